"""Sweeps: every combination of the axes, in batches, paired by seed, resumable after a crash."""

from __future__ import annotations

import contextlib
import functools
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from efhc_jax.data import Dataset
from efhc_jax.engine.program import Spec, laid_out
from efhc_jax.engine.recording import Recorder, record_audit, record_summary
from efhc_jax.engine.sharding import choose_layout, hardware
from efhc_jax.errors import DataError, ExperimentError
from efhc_jax.experiment.experiment import (
    Experiment,
    check_experiment,
    check_registered,
)
from efhc_jax.results.datasets import note_policies, sweep_dataset
from efhc_jax.results.history import Record
from efhc_jax.results.selection import axes_of
from efhc_jax.runs.grid import Grid, check_grid
from efhc_jax.runs.machine import gigabytes
from efhc_jax.runs.memory import Estimate, accelerators_here, choose_batch, estimate
from efhc_jax.runs.prepare import make_spec, prepare, stack, with_data
from efhc_jax.runs.progress import OnProgress, sweep_progress
from efhc_jax.runs.remarks import warn_of_remarks
from efhc_jax.runs.simulation import Control, InitialEvaluations, evaluation_times, run_batch
from efhc_jax.storage.checkpoints import Checkpoints
from efhc_jax.storage.identity import differences, note_files, note_members, owner
from efhc_jax.storage.netcdf import load, save
from efhc_jax.storage.sweep_folder import Store

if TYPE_CHECKING:
    import xarray

_AUDIT_LIMIT = 4 * 2**30  # bytes of graphs that a sweep may record


def sweep(
    experiment: Experiment,
    data: Dataset | None = None,
    *,
    runs_at_once: int | None = None,
    out: str | Path | None = None,
    audit: bool = False,
    nested: bool = False,
    progress: bool | None = None,
    checkpoint_seconds: float = 60.0,
    should_stop: Callable[[], bool] = lambda: False,
    **axes: Sequence[Any],
) -> xarray.Dataset:
    """Run every combination of the axes.

    Runs of the same seed are paired: they share initial models, split, mini-batches and the order in
    which devices become weak, whatever else differs. Each connectivity has its own graph: the first of
    the seed's draws that is connected at it.

    Args:
        experiment: the settings that all runs share.
        data: a dataset to use instead of the one that the experiment names.
        runs_at_once: number of runs in a batch; chosen automatically by default.
        out: folder for finished batches, from which a stopped sweep resumes.
        audit: record the graphs, broadcasts and gradient norms of every iteration.
        nested: for an axis of connectivities, use the positions that are connected at the smallest one
            for all of them, so that every graph contains the sparser ones. Such graphs have more links
            than graphs drawn separately for each connectivity.
        progress: show a progress bar; by default on a terminal and in a notebook.
        checkpoint_seconds: minimum time between checkpoints of the batch in progress.
        should_stop: called after every chunk; if it returns True, the batch in progress is saved.
        **axes: settings of `Experiment`, or parameters of members by their full names, each with a list
            of values.

    Returns:
        The dataset of a run, with one more dimension per axis.

    Example:
        >>> base = Experiment(dataset="synthetic", iterations=10, eval_every=10)
        >>> grid = sweep(base, policy=["efhc", "zt"], seed=range(3))
        >>> dict(grid.accuracy.sizes)
        {'policy': 2, 'seed': 3, 'evaluation': 2, 'device': 10}
    """
    check_experiment(experiment)
    if "batch" in axes:
        raise ExperimentError(
            "batch: is now runs_at_once; give that, or batch_size for samples per mini-batch"
        )
    if data is not None:
        if "dataset" in axes:
            raise ExperimentError("dataset: is an axis, but data are given as well; give one of the two")
        experiment, data = with_data(experiment, data)
    grid = Grid.of(experiment, axes, nested)
    check_grid(grid, given=["placement"] if nested else [])
    if audit:
        _check_audit_fits(grid)
    warn_of_remarks(grid.experiments)
    record = record_audit if audit else record_summary
    store = Store(out) if out is not None else None
    with store.locked() if store and _writes() else contextlib.nullcontext():
        jobs, size = _jobs(grid, data, runs_at_once, record)
        begun_on = None
        if store:
            if _writes():
                begun = store.claim(_manifest(grid, size, jobs, audit))
                size, begun_on = begun["batch"], begun.get("accelerators")
                _note_other_hardware(begun_on, jobs[0].spec.layout.accelerators)
            size = _agreed(size)
            if _agreed(int(store.result.exists())):
                return _finished(store.result, _manifest(grid, size, jobs, audit))
        with sweep_progress(len(grid.experiments), experiment.iterations, progress) as report:
            records = _run_all(jobs, size, store, record, report, checkpoint_seconds, should_stop)
        result = sweep_dataset(grid.experiment, grid.axes, records)
        result.attrs["batch"] = size
        accelerators = result.attrs["accelerators"] = jobs[0].spec.layout.accelerators
        if begun_on not in (None, accelerators):
            result.attrs["begun_on"] = begun_on
        result.attrs["data"] = json.dumps({job.runs[0][1].dataset: job.data.digest for job in jobs})
        note_policies(result, (each.policy for each in grid.experiments))
        note_files(result, grid.experiments)
        note_members(result, grid.experiments)
        result.attrs["parameters"] = _parameters(jobs)
        if store and _writes():
            save(result, store.result)
            store.tidy()
    return result


def _manifest(grid: Grid, batch: int, jobs: list[Job], audit: bool) -> dict[str, Any]:
    """The settings that identify this sweep."""
    return owner(
        grid.experiments,
        {job.runs[0][1].dataset: job.data.digest for job in jobs},
        audit=audit,
        bits=jax.numpy.zeros(()).dtype.itemsize * 8,
        axes=grid.axes,
        batch=batch,
        accelerators=jobs[0].spec.layout.accelerators,
    )


def _finished(path: Path, manifest: dict[str, Any]) -> xarray.Dataset:
    """The result of a finished sweep.

    Raises:
        DataError: it is not the result of this sweep.
    """
    result = load(path)
    axes = {name: result[name].values.tolist() for name in axes_of(result)}
    found = differences(
        {
            "experiment": json.loads(result.attrs["experiment"]),
            "axes": json.loads(json.dumps(axes)),
            "data": json.loads(result.attrs["data"]) if "data" in result.attrs else None,
            "files": json.loads(result.attrs["files"]) if "files" in result.attrs else None,
            "bits": 8 * result.accuracy.dtype.itemsize,
            "audit": "fired" in result,
        },
        manifest,
    )
    if found:
        raise DataError(
            f"{path}: is the result of another sweep ({'; '.join(found)}); "
            "remove this file to compute it again, or give another folder"
        )
    return result


def _note_other_hardware(begun: Any, now: int) -> None:
    """Warn that a sweep resumes on other hardware, where batches have other shapes."""
    if isinstance(begun, int) and begun != now:
        warnings.warn(
            f"this sweep was started on {hardware(begun)} and resumes on {hardware(now)}: the last bits "
            "of its values may not be those of a sweep that ran on either of them throughout",
            stacklevel=3,
        )


class Job(NamedTuple):
    """Runs that share a compilation."""

    spec: Spec
    data: Dataset
    runs: list[tuple[int, Experiment]]  # with their indices in the grid
    initial_evaluations: (
        InitialEvaluations  # evaluations of initial models, which all runs of a seed share
    )
    needs: Estimate  # of memory


def predict(
    grid: Grid, data: Dataset | None = None, runs_at_once: int | None = None, audit: bool = False
) -> str:
    """The batches, compilations and memory of a sweep in one line."""
    jobs, size = _jobs(grid, data, runs_at_once, record_audit if audit else record_summary)
    where = hardware(jobs[0].spec.layout.accelerators)
    runs = len(grid.experiments)
    return (
        f"{runs} run{'s' * (runs > 1)} in batches of {size} on {where}, "
        f"{len(jobs)} compilation{'s' * (len(jobs) > 1)}, {_memory(jobs, size)}" + _nesting(grid)
    )


def _memory(jobs: list[Job], size: int) -> str:
    """Peak memory: that of the process on a CPU; otherwise of one accelerator, and of the host."""
    peaks, processes = [], []
    programs = sum(job.needs.programs for job in jobs)  # those of earlier jobs stay
    for job in jobs:
        each = -(-min(size, len(job.runs)) // job.spec.layout.teams)
        peaks.append(job.needs.peak(each))
        in_process = job.needs.in_process(each, accelerators_here(job.spec))
        processes.append(in_process - job.needs.programs + programs)
    if jax.default_backend() == "cpu":
        return f"about {gigabytes(max(processes))} of memory in all"
    on_each = f"about {gigabytes(max(peaks))} of memory on each accelerator"
    return f"{on_each} and {gigabytes(max(processes))} on the host"


def _nesting(grid: Grid) -> str:
    placement = grid.experiment.placement
    if not placement or "connectivity" not in grid.axes:
        return ""
    return f"; nested graphs: all use positions that are connected at {placement:g}"


def _jobs(
    grid: Grid, data: Dataset | None, asked: int | None, record: Recorder
) -> tuple[list[Job], int]:
    """The runs grouped by compiled program, and the batch size."""
    groups: dict[tuple[str, Spec], list[tuple[int, Experiment]]] = {}
    datasets: dict[str, Dataset] = {}
    for index, experiment in enumerate(grid.experiments):
        check_registered(experiment)
        name = experiment.dataset
        if name not in datasets:
            _, datasets[name] = with_data(experiment, data)
        static = make_spec(experiment, datasets[name], policies=())  # runs of all policies share it
        groups.setdefault((name, static), []).append((index, experiment))
    jobs, sizes = [], []
    for (name, static), runs in groups.items():
        dataset, model = datasets[name], static.rules.model
        layout = choose_layout(static.devices, model.size)
        used = {experiment.policy for _, experiment in runs}
        spec = make_spec(runs[0][1], dataset, layout, used)
        needs = estimate([experiment for _, experiment in runs], dataset, spec, record)
        sizes.append(choose_batch(needs, len(runs), spec, asked))
        jobs.append(Job(spec, dataset, runs, {}, needs))
    return jobs, min(sizes)


def _parameters(jobs: list[Job]) -> int | str:
    """The number n of parameters; as JSON, by model and dataset, if it differs between runs."""
    sizes = {}
    for job in jobs:
        first = job.runs[0][1]
        own = first.parameters("model")
        name = str(first.model) if own is None else f"{first.model} {own}"
        sizes[f"{name} on {first.dataset}"] = job.spec.rules.model.size
    return json.dumps(sizes) if len(set(sizes.values())) > 1 else next(iter(sizes.values()))


def _run_all(
    jobs: list[Job],
    size: int,
    store: Store | None,
    record: Recorder,
    report: OnProgress,
    checkpoint_seconds: float,
    should_stop: Callable[[], bool],
) -> list[Record]:
    """The records of all batches, from disk if they are finished."""
    records: dict[int, Record] = {}
    done = 0
    for number, (job, runs) in enumerate(_batches(jobs, size)):
        iterations = runs[0][1].iterations
        if store and _agreed(int(store.finished(number))):
            finished = store.load(number)
        else:
            checkpoints = None
            if store and jax.process_count() == 1:
                folder, belongs_to = store.checkpoint / str(number), store.owner_of(number)
                checkpoints = Checkpoints(folder, checkpoint_seconds, belongs_to)
            report_batch = functools.partial(_report_part, report, done, len(runs))
            control = Control(report_batch, should_stop, checkpoints)
            finished = _run(job, [e for _, e in runs], size, control, record)
            if store and _writes():
                store.save(number, finished)  # before it is reported as finished
            if checkpoints:
                checkpoints.clear()
        done += len(runs) * iterations
        report(done)
        records |= {place: one for (place, _), one in zip(runs, finished, strict=True)}
    return [records[place] for place in range(len(records))]


def repeat(
    grid: Grid, data: Dataset | None, batch: int | None, audit: bool, runs: int | None = None
) -> Iterator[tuple[int, Record]]:
    """Repeat a grid or a part of it, in the same batches.

    Args:
        grid: the sweep.
        data: a dataset to use instead of the one that the experiment names.
        batch: the batch size; None chooses one.
        audit: whether it was recorded for an audit.
        runs: minimum number of runs, in whole batches from all over the grid; None for all.

    Yields:
        The index of a run in the grid, and its record.
    """
    record = record_audit if audit else record_summary
    jobs, size = _jobs(grid, data, batch, record)
    batches = list(_batches(jobs, size))
    wanted = len(batches) if runs is None else min(len(batches), -(-runs // size))
    for number in np.linspace(0, len(batches) - 1, wanted).round().astype(int):
        job, members = batches[number]
        found = _run(job, [experiment for _, experiment in members], size, Control(), record)
        for (place, _), one in zip(members, found, strict=True):
            yield place, one


def _report_part(report: OnProgress, before: int, runs: int, iterations: int) -> None:
    report(before + runs * iterations)


def _batches(jobs: list[Job], size: int) -> Iterator[tuple[Job, list[tuple[int, Experiment]]]]:
    for job in jobs:
        for first in range(0, len(job.runs), size):
            yield job, job.runs[first : first + size]


def _run(
    job: Job, experiments: list[Experiment], size: int, control: Control, record: Recorder
) -> list[Record]:
    """One batch; a short one is padded with copies, so that all batches have the same shape."""
    first = experiments[0]
    runs = [prepare(experiment, job.data, job.spec) for experiment in experiments]
    layout, whole = job.spec.layout.fitted(min(size, len(job.runs)))
    runs += [runs[-1]] * (whole - len(runs))
    spec = laid_out(job.spec, layout)
    times = evaluation_times(first)
    batch = run_batch(
        spec,
        stack(runs, spec.dynamics, spec.participation),
        job.data,
        times,
        control,
        record,
        job.initial_evaluations,
        filled_from=len(experiments),
    )
    found = batch[: len(experiments)]
    each = whole / len(experiments)  # the time of copies counts for the runs of the batch
    return [
        one._replace(seconds=each * one.seconds, evaluation_seconds=each * one.evaluation_seconds)
        for one in found
    ]


def _check_audit_fits(grid: Grid) -> None:
    each = [2 * e.iterations * e.devices**2 for e in grid.experiments]
    if sum(each) > _AUDIT_LIMIT:
        raise ExperimentError(
            f"audit: the graphs of {len(each)} runs would take {sum(each) / 2**30:.1f} GiB, and "
            f"{_AUDIT_LIMIT / 2**30:.0f} GiB is the most; try fewer seeds, devices or iterations"
        )


def _writes() -> bool:
    """Whether this process of the job writes to disk."""
    return jax.process_index() == 0


def _agreed(value: int) -> int:
    """The value of the first process, on all processes."""
    if jax.process_count() == 1:
        return value
    from jax.experimental import multihost_utils

    return int(multihost_utils.broadcast_one_to_all(np.int32(value)))
