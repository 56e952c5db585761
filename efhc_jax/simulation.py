"""Runs from beginning to end: the host's loop around the compiled program."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from efhc_jax.config import Experiment
from efhc_jax.data import Dataset, load_dataset
from efhc_jax.errors import EfhcError, ExperimentError
from efhc_jax.program import (
    Recorder,
    Samples,
    Spec,
    advance,
    evaluate,
    initialise,
    make_spec,
    record_summary,
    record_trace,
)
from efhc_jax.progress import Report, progress_bar
from efhc_jax.results import Record, run_dataset
from efhc_jax.scenario import Hyper, prepare, stack

if TYPE_CHECKING:
    import xarray

_LONGEST_CHUNK = 500  # iterations between two looks at the progress
_TRACE_LIMIT = 4 * 2**30  # bytes that a trace may hold


class DivergedError(EfhcError):
    """A model stopped being finite. `result` holds what was computed until then."""

    def __init__(self, message: str, result: xarray.Dataset):
        super().__init__(message)
        self.result = result


class Divergence(NamedTuple):
    """The first iteration in which a model was not finite, and whose models were not."""

    iteration: int
    devices: tuple[int, ...]


class Batch(NamedTuple):
    """What a batch of runs gave: one record a run, and where a run diverged."""

    records: list[Record]
    divergences: list[Divergence | None]


def simulate(
    experiment: Experiment,
    data: Dataset | None = None,
    *,
    trace: bool = False,
    progress: bool | None = None,
) -> xarray.Dataset:
    """Run one experiment.

    Args:
        experiment: what to run.
        data: a dataset of your own, in place of the one that the experiment names.
        trace: keep the whole inside of every iteration, for small runs.
        progress: show a bar; by default only on a terminal.

    Returns:
        A dataset with `accuracy`, `transmission_time` and more; the documentation lists all of it.

    Raises:
        DivergedError: a model stopped being finite; the error holds what was computed until then.

    Example:
        >>> experiment = Experiment(dataset="synthetic", iterations=20, eval_every=10)
        >>> simulate(experiment).sizes["evaluation"]
        3
    """
    data = load_dataset(experiment.dataset) if data is None else data
    spec = make_spec(experiment, data)
    if trace:
        _check_trace_fits(experiment, spec)
    hypers = stack([prepare(experiment, data)])
    times = evaluation_times(experiment.iterations, experiment.eval_every)
    record = record_trace if trace else record_summary
    title = f"{experiment.policy} · {experiment.model} · {experiment.dataset}"
    began = time.perf_counter()
    with progress_bar(experiment.iterations, title, progress) as report:
        batch = run_batch(spec, hypers, data, times, report, record)
    seconds = time.perf_counter() - began
    result = run_dataset(experiment, batch.records[0], seconds)
    divergence = batch.divergences[0]
    if divergence is not None:
        raise DivergedError(_advice(experiment, divergence), result)
    return result


def run_batch(
    spec: Spec,
    hypers: Hyper,
    data: Dataset,
    times: np.ndarray,
    report: Report,
    record: Recorder = record_summary,
) -> Batch:
    """Advance a batch of runs from one evaluation to the next.

    A run that diverges is cut off there, and the others go on; it all ends early when none is left.

    Args:
        spec: what the program is compiled for.
        hypers: the values of the runs, stacked.
        data: what they train and are tested on.
        times: the iterations to evaluate at, from 0 to the last.
        report: is told how many iterations have been done.
        record: what to keep of every iteration.
    """
    train = Samples(*jax.device_put((data.train_images, data.train_labels)))
    test = Samples(*jax.device_put((data.test_images, data.test_labels)))
    states = initialise(spec, hypers)
    initial = np.asarray(states.weights)
    divergences: list[Divergence | None] = [None] * len(initial)
    steps: list[dict[str, np.ndarray]] = []
    evaluations: list[dict[str, np.ndarray]] = []
    for first, end in zip([0, *times], times, strict=False):
        for begin, length in chunks(int(first), int(end)):
            states, recorded = advance(spec, record, length, hypers, states, begin, train)
            steps.append(jax.device_get(recorded))
            _note_divergences(divergences, steps[-1].pop("finite"), begin)
            report(begin + length)
        evaluations.append(jax.device_get(evaluate(spec, states, test)))
        _note_divergences(divergences, evaluations[-1].pop("finite")[:, None], int(end))
        if all(divergences):
            break

    joined_steps = _join(steps, np.concatenate)
    joined_evaluations = _join(evaluations, lambda arrays, axis: np.stack(arrays, axis))
    records = []
    for run, divergence in enumerate(divergences):
        last = int(times[-1]) if divergence is None else divergence.iteration - 1
        kept = int((times <= last).sum())
        records.append(
            Record(
                bandwidth=np.asarray(hypers.bandwidth[run]),
                degree=np.asarray(hypers.adjacency[run]).sum(1),
                initial_weights=initial[run],
                iterations=times[:kept],
                evaluations={k: v[run, :kept] for k, v in joined_evaluations.items()},
                steps={k: v[run, : max(last, 0)] for k, v in joined_steps.items()},
            )
        )
    return Batch(records, divergences)


def evaluation_times(iterations: int, every: int) -> np.ndarray:
    """The iterations to evaluate at: before the first, at every multiple, and after the last.

    Example:
        >>> evaluation_times(70, 30).tolist()
        [0, 30, 60, 70]
    """
    return np.unique([*range(0, iterations, every), iterations])


def chunks(first: int, end: int) -> Iterator[tuple[int, int]]:
    """(first, length) of even pieces between two evaluations, none too long to show progress.

    Even pieces have at most two different lengths, and each length is one compilation.

    Example:
        >>> list(chunks(1000, 2200))
        [(1000, 400), (1400, 400), (1800, 400)]
    """
    if first == end:
        return
    pieces = -(-(end - first) // _LONGEST_CHUNK)
    edges = [first + (end - first) * piece // pieces for piece in range(pieces + 1)]
    for begin, stop in zip(edges, edges[1:], strict=False):
        yield begin, stop - begin


def _note_divergences(
    divergences: list[Divergence | None], finite: np.ndarray, first: int
) -> None:
    """Enter the runs of `finite` (run, step, device) that have just stopped being finite."""
    for run in np.flatnonzero(~finite.all(axis=(1, 2))):
        if divergences[run] is None:
            step = int(finite[run].all(axis=1).argmin())
            devices = np.flatnonzero(~finite[run, step])
            divergences[run] = Divergence(first + step, tuple(int(d) for d in devices))


def _join(parts: list[dict[str, np.ndarray]], how: ...) -> dict[str, np.ndarray]:
    """Put what was recorded piece by piece together along the second axis."""
    return {name: how([part[name] for part in parts], axis=1) for name in (parts or [{}])[0]}


def _advice(experiment: Experiment, divergence: Divergence) -> str:
    devices = ", ".join(str(device) for device in divergence.devices)
    return (
        f"learning_rate={experiment.learning_rate:g}: the models of devices {devices} stopped being "
        f"finite at iteration {divergence.iteration}; the iterations before it are kept; "
        f"try a smaller learning_rate, such as {experiment.learning_rate / 10:g}"
    )


def _check_trace_fits(experiment: Experiment, spec: Spec) -> None:
    itemsize = jnp.zeros(()).dtype.itemsize
    each = 2 * experiment.devices * spec.rules.model.size * itemsize
    if experiment.iterations * each > _TRACE_LIMIT:
        raise ExperimentError(
            f"iterations={experiment.iterations}: a trace would hold "
            f"{experiment.iterations * each / 2**30:.1f} GiB; "
            f"try {_TRACE_LIMIT // each:,} iterations or fewer with a trace"
        )
