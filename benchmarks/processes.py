"""Parts of a benchmark in separate processes, because JAX's devices are fixed when it starts."""

from __future__ import annotations

import datetime
import importlib.metadata
import importlib.util
import os
import platform
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from efhc_jax.errors import EfhcError

Result = TypeVar("Result")


def in_own_process(function: Callable[..., Result], *arguments: Any) -> Result:
    """The result of a function, called in a new process."""
    context = get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=_quiet_when_stopped) as pool:
        try:
            return pool.submit(function, *arguments).result()
        except BrokenProcessPool:
            raise EfhcError(
                "bench: the measured process was killed, perhaps because memory ran out; try --quick"
            ) from None


def _quiet_when_stopped() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C is handled by the parent process


def start(runs: int) -> None:
    """Configure JAX as `efhc run` does for one run, and as `efhc sweep` does for several.

    Compiled programs are not cached, so that compilation times are correct.
    """
    import jax

    from efhc_jax.cli.startup import one_device_a_core

    jax.config.update("jax_enable_compilation_cache", False)
    if runs > 1:
        one_device_a_core(runs)


def machine() -> dict[str, Any]:
    """The hardware and load of this machine, as seen by this process."""
    import jax

    devices = jax.devices()
    return {
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "jax_devices": f"{len(devices)} × {devices[0].device_kind} ({devices[0].platform})",
        "torch_threads": _torch_threads(),
        "load_average": list(os.getloadavg()),
    }


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that affect the times."""
    found = {"python": platform.python_version()}
    for name in ("efhc-jax", "jax", "jaxlib", "numpy", "torch"):
        if name != "torch" or importlib.util.find_spec("torch"):
            found[name] = importlib.metadata.version(name)
    return found


def now() -> str:
    """The current time, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def _torch_threads() -> str:
    """Threads and device of PyTorch, if this process has used it."""
    import sys

    if "torch" not in sys.modules:
        return "not used"
    from benchmarks.peers.torch_device import DEVICE

    return f"{sys.modules['torch'].get_num_threads()} threads ({DEVICE.type})"
