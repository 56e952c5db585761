"""The compilers for accelerators, in processes of their own.

They are installed next to the environment and not into it: JAX would look for the hardware in every
command.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.accelerators.targets import Target
from benchmarks.processes import in_own_process
from efhc_jax.errors import ExperimentError

FOLDER = Path(__file__).parents[2] / ".compilers"

Result = TypeVar("Result")


def are_installed() -> bool:
    """Whether `scripts/compilers` has been run."""
    return any(FOLDER.glob("installed-*"))


def check_installed() -> None:
    """Raise if the compilers are missing."""
    if not are_installed():
        raise ExperimentError(
            "suite=accelerators: needs XLA's compilers for GPUs and TPUs (1.2 GB, no hardware); "
            "run scripts/compilers"
        )


def with_compilers(function: Callable[..., Result], *arguments: Any) -> Result:
    """The result of a function, called in a new process that has the compilers."""
    return in_own_process(_call, function, *arguments)


def _call(function: Callable[..., Result], *arguments: Any) -> Result:
    use()
    return function(*arguments)


def use() -> None:
    """Make the compilers known to this process, whose JAX must not have started."""
    sys.path.insert(0, str(FOLDER))
    os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"
    os.environ |= {"TPU_SKIP_MDS_QUERY": "1", "TPU_WORKER_HOSTNAMES": "localhost"}
    os.environ |= {"TPU_ACCELERATOR_TYPE": "v5litepod-8", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
    with _silent_stderr():  # the compilers say that there is no hardware
        import jax

        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_enable_compilation_cache", False)
        jax.devices()


@contextlib.contextmanager
def _silent_stderr() -> Iterator[None]:
    """No messages of this process, including those of its libraries in C++."""
    kept = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def devices_of(target: Target, count: int = 1) -> list[Any]:
    """So many of the described accelerators, to compile for."""
    from jax.experimental import topologies

    if target.description:
        hosts = -(-count // 8)
        described = topologies.get_topology_desc(
            target.kind,
            "cuda",
            target_config=target.description,
            topology=f"1x{hosts}x{count // hosts}",
        )
    else:
        width, height = {1: (1, 1), 8: (2, 4), 64: (8, 8)}[count]
        described = topologies.get_topology_desc(
            f"{target.kind}:{width}x{height}",
            "tpu",
            chips_per_host_bounds=[width, height, 1],
            num_slices=1,
        )
    return list(described.devices)[:count]
