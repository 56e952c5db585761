"""Configuration of JAX before it computes anything."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from efhc_jax.disk.caches import keep_programs
from efhc_jax.errors import ExperimentError, first_line
from efhc_jax.text.printing import print_text


def start_jax() -> None:
    """Keep compiled programs on disk, so that later runs of the same shapes start faster.

    Raises:
        ExperimentError: JAX is told to use a platform that is not available.
    """
    import jax

    keep_programs()
    wanted = jax.config.jax_platforms  # type: ignore[attr-defined]
    if wanted and "cpu" not in wanted.split(","):
        _check_platform(wanted)


def _check_platform(wanted: str) -> None:
    """Initialize JAX, and explain why if it fails: its own message says little."""
    import jax

    try:
        jax.devices()
    except Exception as error:  # for CUDA without its plugin, an assertion
        reason = first_line(error, "it is not installed")
        reason = reason.split("': ", 1)[-1].split(" (set ")[0].rstrip(".")
        jax.config.update("jax_platforms", None)
        here = ", ".join(sorted({device.platform for device in jax.devices()}))
        raise ExperimentError(
            f"JAX_PLATFORMS={wanted}: cannot be used here ({reason}); unset it, or set it to {here}"
        ) from None


@contextlib.contextmanager
def notes() -> Iterator[None]:
    """Print each warning as one line, without its location in the code."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        print_text(f"efhc: note: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def one_device_a_core(runs: int, batch: int | None = None) -> None:
    """Treat every core of a CPU as a JAX device, over which a sweep distributes its runs.

    Batches run faster that way than with XLA's own threads. Call it before JAX computes anything. It
    does not change accelerators, or a number of devices that the user has set.

    Args:
        runs: number of runs; more devices than runs would only compute copies.
        batch: batch size given by the user, which the number of devices must divide.
    """
    devices = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1, runs)
    if batch is None or batch % devices == 0:
        cpu_devices(devices)


def cpu_devices(count: int) -> None:
    """Set the number of CPU devices, unless JAX has been initialized or the user has set a number."""
    import jax

    set_by_user = "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    if count < 2 or set_by_user:
        return
    with contextlib.suppress(RuntimeError):  # JAX has been initialized already, as in a notebook
        jax.config.update("jax_num_cpu_devices", count)


def join_job(coordinator: str | None, processes: int | None, process_id: int | None) -> None:
    """Join the other processes of a job.

    SLURM and Open MPI are detected automatically; elsewhere all three arguments are needed.

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
        reason = first_line(error, "no answer")
        raise ExperimentError(
            f"distributed: no job to join ({reason}); start it under SLURM or Open MPI, or give "
            "--coordinator HOST:PORT --processes N --process-id I"
        ) from None
