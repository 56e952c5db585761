"""Memory estimates, so that a sweep that does not fit is rejected before it starts."""

from __future__ import annotations

import contextlib
import math
import sys
from pathlib import Path
from typing import NamedTuple

import jax

from efhc_jax.config import Experiment
from efhc_jax.data import Dataset
from efhc_jax.errors import ExperimentError
from efhc_jax.graphs import expected_links
from efhc_jax.layout import hardware
from efhc_jax.program import Spec

_SHARE = 0.6  # of the free memory; the rest is for the program itself and other processes
_BYTES_OF_LINK = 48  # while a network is generated
_MOST_RUNS_ON_CPU = 64  # larger batches are not faster, and a crash would cost more
_MOST_RUNS = 1024


class Estimate(NamedTuple):
    """Memory of a batch in bytes on one accelerator."""

    fixed: int  # independent of the batch: the dataset, the evaluation of one run
    per_run: int

    def peak(self, runs: int) -> int:
        """Peak memory with this many runs on the accelerator."""
        return self.fixed + runs * self.per_run


def estimate(experiment: Experiment, dataset: Dataset, spec: Spec) -> Estimate:
    """Estimate of the peak memory of the program.

    A run keeps W, Ŵ and the models at budgets; a step also needs the gradient, the new W and some
    temporaries.
    """
    itemsize = jax.numpy.zeros(()).dtype.itemsize
    models = experiment.devices * spec.rules.model.size * itemsize
    gathered = 0
    if spec.layout.rows is not None:  # each accelerator holds a part, and all of W while it mixes
        gathered = models
        models //= spec.layout.rows.shape["rows"]
    images = dataset.train_images.nbytes + dataset.test_images.nbytes
    evaluation = 3 * models + 64 * 2**20  # rows and one chunk of activations
    history = experiment.iterations * 16 + 1000 * experiment.devices
    split = dataset.train_labels.nbytes
    per_run = models * (6 + 2 * len(experiment.budgets)) + gathered + split + history
    return Estimate(images + evaluation, per_run)


def check_fits(experiment: Experiment, dataset: Dataset, spec: Spec) -> None:
    """Raise if the models and the network of a single run do not fit into memory."""
    models = 4 * experiment.devices * spec.rules.model.size * jax.numpy.zeros(()).dtype.itemsize
    if spec.layout.rows is not None:  # part of W on each accelerator, and all of it while it mixes
        models = models // spec.layout.rows.shape["rows"] + models // 4
    network = _BYTES_OF_LINK * expected_links(
        experiment.graph, experiment.devices, experiment.connectivity
    )
    needed, free = models + network + dataset.train_images.nbytes, free_memory()
    if needed > free:
        raise ExperimentError(
            f"devices={experiment.devices}: the models take {gigabytes(models)} and the network "
            f"{gigabytes(network)}, but {gigabytes(free)} are free; try fewer devices or links, or a "
            "smaller model"
        )


def choose_batch(needs: Estimate, runs: int, spec: Spec, asked: int | None = None) -> int:
    """The number of runs computed at once, over all accelerators.

    Args:
        needs: their memory.
        runs: total number of runs.
        spec: the program, with its layout.
        asked: the batch size given by the user.

    Raises:
        ExperimentError: the given size does not fit or is not a multiple of the number of accelerators,
            or not even one run per accelerator fits.
    """
    teams = spec.layout.teams
    free = free_memory()
    fitting = int((free * _SHARE - needs.fixed) // needs.per_run) * teams
    if fitting < teams:
        raise ExperimentError(
            f"devices and model: a single run needs {gigabytes(needs.peak(1))}, but "
            f"{gigabytes(free)} are free; try fewer devices or a smaller model"
        )
    if asked is not None:
        if asked < 1:
            raise ExperimentError(f"batch={asked}: give a whole number of 1 or more")
        if asked % teams:
            raise ExperimentError(
                f"batch={asked}: cannot be divided over {hardware(teams)}; give a multiple of {teams}"
            )
        if asked > fitting:
            raise ExperimentError(
                f"batch={asked}: needs {gigabytes(needs.peak(asked // teams))}, but "
                f"{gigabytes(free)} are free; try {fitting} or less"
            )
        return asked
    most = _MOST_RUNS_ON_CPU if jax.default_backend() == "cpu" else _MOST_RUNS * teams
    batches = math.ceil(runs / min(fitting, max(most, teams)))
    even = math.ceil(runs / batches)
    return math.ceil(even / teams) * teams


def free_memory() -> int:
    """Free memory in bytes: that of the accelerator with the least, or of this machine for a CPU."""
    limits = []
    for accelerator in jax.local_devices():
        stats = accelerator.memory_stats() or {}
        if "bytes_limit" in stats:
            limits.append(stats["bytes_limit"] - stats.get("bytes_in_use", 0))
    if limits:
        return min(limits)
    return _free_on_host() // len(jax.local_devices())


def peak_memory() -> int:
    """Peak memory of this process in bytes: on one of its accelerators, or in total on a CPU."""
    stats = [device.memory_stats() or {} for device in jax.local_devices()]
    peaks = [each["peak_bytes_in_use"] for each in stats if "peak_bytes_in_use" in each]
    if peaks:
        return max(peaks)
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def gigabytes(count: float) -> str:
    """A number of bytes in gigabytes."""
    return f"{count / 1e9:.2f} GB"


def _free_on_host() -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return 4 * 2**30  # not Linux: a cautious guess
    limit = Path("/sys/fs/cgroup/memory.max")  # the limit of a container
    with contextlib.suppress(OSError, ValueError):
        free = min(free, int(limit.read_text()))
    return free
