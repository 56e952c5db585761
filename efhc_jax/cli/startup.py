"""What the commands do before JAX computes anything."""

from __future__ import annotations

import contextlib
import os

from efhc_jax.caches import keep_programs
from efhc_jax.errors import ExperimentError


def start_jax() -> None:
    """Keep compiled programs on disk, so that the second run of a kind starts at once.

    Raises:
        ExperimentError: JAX is told to use a platform that is not here.
    """
    import jax

    keep_programs()
    wanted = jax.config.jax_platforms  # type: ignore[attr-defined]
    if wanted and "cpu" not in wanted.split(","):
        _check_platform(wanted)


def _check_platform(wanted: str) -> None:
    """Let JAX begin; it says little, or nothing at all, where it cannot."""
    import jax

    try:
        jax.devices()
    except Exception as error:  # for CUDA without its plugin, an assertion
        reason = (str(error).strip().splitlines() or ["it is not installed"])[0]
        reason = reason.split("': ", 1)[-1].split(" (set ")[0].rstrip(".")
        jax.config.update("jax_platforms", None)
        here = ", ".join(sorted({device.platform for device in jax.devices()}))
        raise ExperimentError(
            f"JAX_PLATFORMS={wanted}: cannot be used here ({reason}); unset it, or set it to {here}"
        ) from None


def one_device_a_core(runs: int, batch: int | None = None) -> None:
    """Let a CPU count as one device a core, over which a sweep then spreads its runs.

    Batches run faster that way than with XLA's own threads. It must come before JAX computes anything;
    accelerators, and a number of devices that the user has set, stay as they are.

    Args:
        runs: how many there are; more devices than that would only compute copies.
        batch: the size of a batch that the user wants; it must spread evenly.
    """
    devices = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1, runs)
    if batch is None or batch % devices == 0:
        cpu_devices(devices)


def cpu_devices(count: int) -> None:
    """Let a CPU count as so many devices, unless JAX has begun or the user has set another number."""
    import jax

    set_by_user = "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    if count < 2 or set_by_user:
        return
    with contextlib.suppress(RuntimeError):  # JAX is already at work, as in a notebook
        jax.config.update("jax_num_cpu_devices", count)


def join_job(coordinator: str | None, processes: int | None, process_id: int | None) -> None:
    """Join the other processes of a job.

    SLURM and Open MPI tell each process who it is; elsewhere all three arguments are needed.

    Raises:
        ExperimentError: there is no such job.
    """
    import jax

    explicit = (coordinator, processes, process_id)
    if any(given is not None for given in explicit) and None in explicit:
        raise ExperimentError(
            "distributed: give --coordinator, --processes and --process-id together, or none of them"
        )
    try:
        jax.distributed.initialize(coordinator, processes, process_id, initialization_timeout=120)
    except (ValueError, RuntimeError) as error:
        reason = (str(error).strip().splitlines() or ["no answer"])[0]
        raise ExperimentError(
            f"distributed: no job to join ({reason}); start it under SLURM or Open MPI, or give "
            "--coordinator HOST:PORT --processes N --process-id I"
        ) from None
