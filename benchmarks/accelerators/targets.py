"""Accelerators to compile for, from their data sheets."""

from __future__ import annotations

from typing import NamedTuple


class Target(NamedTuple):
    """An accelerator.

    Attributes:
        name: in tables.
        platform: as JAX lowers for it.
        kind: as the compiler calls it.
        bandwidth: bytes per second of its memory.
        flops: operations per second of matrix products in full 32-bit precision.
        link: bytes per second that it exchanges with others in one direction.
        launch: seconds that an operation takes at least, an assumption of the model; 0 if there is no
            model, as for a TPU, which keeps much on its chip and launches nothing.
        description: for the compiler; empty if it knows the kind.
    """

    name: str
    platform: str
    kind: str
    bandwidth: float
    flops: float
    link: float
    launch: float
    description: str = ""


_GPU = """
gpu_device_info {{
  cuda_compute_capability {{ major: {capability} minor: 0 }}
  core_count: {cores} fpus_per_core: {units} clock_rate_ghz: {clock}
  memory_bandwidth: {bandwidth:.0f} l2_cache_size: {cache} device_memory_size: {memory}
  shared_memory_per_core: {shared} shared_memory_per_block_optin: {shared} shared_memory_per_block: 49152
  threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: 2048
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 8 patch: 0 }}
runtime_version {{ major: 12 minor: 9 patch: 0 }}
device_description_str: "{kind}"
"""


def _gpu(name: str, kind: str, *, bandwidth: float, flops: float, link: float, **more: float) -> Target:
    description = _GPU.format(kind=kind, bandwidth=bandwidth, **more)
    return Target(name, "cuda", kind, bandwidth, flops, link, 2.5e-6, description)


H100 = _gpu(
    "H100",
    "NVIDIA H100 80GB HBM3",
    bandwidth=3.35e12,
    flops=67e12,
    link=450e9,
    capability=9,
    cores=132,
    units=128,
    clock=1.98,
    cache=50 * 2**20,
    memory=80 * 10**9,
    shared=227 * 2**10,
)
A100 = _gpu(
    "A100",
    "NVIDIA A100-SXM4-40GB",
    bandwidth=1.555e12,
    flops=19.5e12,
    link=300e9,
    capability=8,
    cores=108,
    units=64,
    clock=1.41,
    cache=40 * 2**20,
    memory=40 * 10**9,
    shared=163 * 2**10,
)
# 197 TFLOP/s in bfloat16, of which full precision takes six products for one.
V5E = Target("TPU v5e", "tpu", "v5e", 0.82e12, 197e12 / 6, 186e9, 0.0)

TARGETS = (H100, A100, V5E)
