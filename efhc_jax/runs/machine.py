"""Memory of this machine and its accelerators."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import jax


def free_memory() -> int:
    """Free memory in bytes: that of the accelerator with the least, or of this machine for a CPU."""
    limits = []
    for accelerator in jax.local_devices():
        stats = accelerator.memory_stats() or {}
        if "bytes_limit" in stats:
            limits.append(stats["bytes_limit"] - stats.get("bytes_in_use", 0))
    return min(limits) if limits else free_on_host()


def peak_memory() -> int:
    """Peak memory of this process in bytes: on one of its accelerators, or in total on a CPU."""
    stats = [device.memory_stats() or {} for device in jax.local_devices()]
    peaks = [each["peak_bytes_in_use"] for each in stats if "peak_bytes_in_use" in each]
    if peaks:
        return max(peaks)
    with contextlib.suppress(OSError, StopIteration):
        # `getrusage` of a new process starts from the peak of its parent.
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def gigabytes(count: float) -> str:
    """A number of bytes in gigabytes."""
    return f"{count / 1e9:.2f} GB"


def free_on_host() -> int:
    """Free memory of this machine in bytes, within the limit of its container."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return 4 * 2**30  # not Linux: a cautious guess
    limit = Path("/sys/fs/cgroup/memory.max")  # the limit of a container
    with contextlib.suppress(OSError, ValueError):
        free = min(free, int(limit.read_text()))
    return free


def resident_memory() -> int:
    """Resident memory of this process in bytes."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0
    import resource

    return pages * resource.getpagesize()
