"""Simulation of runs: the loop on the host around the compiled program."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from efhc_jax.data import Dataset
from efhc_jax.engine.budgets import Spending, may_reach, start_spending, with_exact_amounts
from efhc_jax.engine.evaluation import evaluate, evaluate_at_budgets, evaluate_mean_models
from efhc_jax.engine.program import Progress, Samples, Spec, advance, initialise
from efhc_jax.engine.recording import Recorder, record_audit, record_summary, record_trace
from efhc_jax.engine.sharding import choose_layout_of_one, place_runs, place_shared, to_host
from efhc_jax.engine.step import State
from efhc_jax.engine.values import RunValues
from efhc_jax.errors import EfhcError, ExperimentError
from efhc_jax.experiment.experiment import Experiment, check_experiment, check_registered
from efhc_jax.methods.base import largest_message
from efhc_jax.network.dynamics import DYNAMICS
from efhc_jax.network.slots import sum_of_slots
from efhc_jax.randomness.draws import pinned_settings
from efhc_jax.results.datasets import note_policies, run_dataset
from efhc_jax.results.history import History, Record
from efhc_jax.results.variables import VARIABLES
from efhc_jax.runs.divergence import why_a_run_ended
from efhc_jax.runs.loggers import Logger
from efhc_jax.runs.memory import check_fits
from efhc_jax.runs.prepare import make_spec, prepare, stack, with_data
from efhc_jax.runs.progress import OnProgress, run_progress
from efhc_jax.runs.remarks import warn_of_remarks
from efhc_jax.storage.checkpoints import Checkpoints, from_leaves, leaves_by_path
from efhc_jax.storage.identity import note_files, note_members

if TYPE_CHECKING:
    import xarray

_LONGEST_CHUNK = 500  # iterations between updates of the progress
_TRACE_LIMIT = 4 * 2**30  # largest trace in bytes


class DivergedError(EfhcError):
    """A model is no longer finite. `result` holds the iterations before."""

    def __init__(self, message: str, result: xarray.Dataset):
        super().__init__(message)
        self.result = result


class Control(NamedTuple):
    """Progress, interruption, checkpoints and logging of a run."""

    report: OnProgress = lambda done: (
        None
    )  # called with the number of iterations of the batch that are done
    should_stop: Callable[[], bool] = lambda: False  # called after every chunk
    checkpoints: Checkpoints | None = None
    logger: Logger | None = None  # receives metrics during the run


_ALONE = Control()
InitialEvaluations = dict[bytes, dict[str, np.ndarray]]  # evaluations of initial models by random key


def simulate(
    experiment: Experiment,
    data: Dataset | None = None,
    *,
    trace: bool = False,
    audit: bool = False,
    progress: bool | None = None,
    control: Control | None = None,
) -> xarray.Dataset:
    """Run one experiment.

    Args:
        experiment: the settings.
        data: a dataset to use instead of the one that the experiment names.
        trace: record the full state of every iteration (small runs only).
        audit: record graphs, broadcasts, gradient norms and the global loss, for `efhc_jax.audit`.
        progress: show a progress bar; by default on a terminal and in a notebook.
        control: checkpoints, interruption and logging.

    Returns:
        A dataset with `accuracy`, `transmission_time` and more; the documentation lists all variables.

    Raises:
        DivergedError: a model is no longer finite; the error holds the iterations before.
        DataError: the data are missing, damaged or invalid.

    Example:
        >>> experiment = Experiment(dataset="synthetic", iterations=20, eval_every=10)
        >>> simulate(experiment).sizes["evaluation"]
        3
    """
    check_experiment(experiment)
    check_registered(experiment)
    experiment, data = with_data(experiment, data)
    spec = make_spec(experiment, data, choose_layout_of_one(experiment.devices))
    warn_of_remarks([experiment])
    if trace:
        _check_trace_fits(experiment, spec)
    if trace or audit:
        _check_graphs_fit(experiment)
    record = record_trace if trace else record_audit if audit else record_summary
    check_fits(experiment, data, spec, record)
    values = stack([prepare(experiment, data, spec)], spec.dynamics, spec.participation)
    times = evaluation_times(experiment)
    method = "" if experiment.is_default("method") else f"{experiment.method} · "
    title = f"{method}{experiment.policy} · {experiment.model} · {experiment.dataset}"
    control = control or _ALONE
    with run_progress(experiment.iterations, title, progress) as report:
        control = control._replace(report=_both(report, control.report))
        (one,) = run_batch(spec, values, data, times, control, record)
    result = run_dataset(experiment, one)
    result.attrs["data"] = json.dumps({experiment.dataset: data.digest})
    note_policies(result, [experiment.policy])
    note_files(result, [experiment])
    note_members(result, [experiment])
    result.attrs["parameters"] = spec.rules.model.size
    if one.diverged_at >= 0:
        raise DivergedError(why_a_run_ended(experiment, one), result)
    return result


def _both(one: OnProgress, other: OnProgress) -> OnProgress:
    def report(done: int) -> None:
        one(done)
        other(done)

    return report


@pinned_settings()
def run_batch(
    spec: Spec,
    values: RunValues,
    data: Dataset,
    times: np.ndarray,
    control: Control = _ALONE,
    record: Recorder = record_summary,
    initial_evaluations: InitialEvaluations | None = None,
    filled_from: int | None = None,
) -> list[Record]:
    """Advance a batch of runs through all evaluations, and return one record per run.

    A run that diverges ends there, and the others continue; the batch ends early if none is left.

    Args:
        spec: the static settings.
        values: the values of the runs, stacked.
        data: the training and test data.
        times: the iterations to evaluate at, from 0 to the last.
        control: progress, interruption and checkpoints. A batch with a checkpoint resumes from it.
        record: function that selects the values to record in every iteration.
        initial_evaluations: known evaluations of initial models; new ones are added.
        filled_from: the number of runs before the copies of the last one that pad the batch.

    Raises:
        KeyboardInterrupt: `control.should_stop` returned True; the state is in the checkpoint.
    """
    began = time.perf_counter()
    values = place_runs(spec.layout, values)
    train = place_shared(spec.layout, Samples(data.train_images, data.train_labels))
    test = place_shared(spec.layout, Samples(data.test_images, data.test_labels))
    degree = jax.vmap(sum_of_slots)(values.network.adjacency, values.network.neighbors)
    bandwidth, degree, budgets = to_host((values.bandwidth, degree, values.budgets[0]))
    progress, spending, history = _begin(spec, values, control.checkpoints, filled_from)
    tracing = record is record_trace
    initial = None
    if tracing:
        initial = to_host(initialise(spec, values).state.weights)  # also when resuming from a checkpoint
        initial = initial.reshape(*initial.shape[:2], -1)
    before = history.seconds
    dearest = _largest_messages(spec, values) * np.mean(1 / bandwidth.astype(np.float64), axis=1)

    for part in list(plan(times))[history.position :]:
        if part.length == 0:
            evaluating = time.perf_counter()
            if part.first == 0:
                found = _evaluate_initial(spec, values, progress.state, test, initial_evaluations)
            else:
                found = to_host(evaluate(spec, progress.state, test))
            if record is not record_summary:
                found |= to_host(evaluate_mean_models(spec, values, progress.state, train))
            history.evaluation_seconds += time.perf_counter() - evaluating
            history.add_evaluation(found, part.first)
            _log(control, found, part.first)
        else:
            watched = None
            if budgets.size:
                most = history.spent + part.length * dearest
                if may_reach(most, budgets, to_host(spending.reached)):
                    watched = place_runs(spec.layout, with_exact_amounts(spending, history.spent))
            progress, watched, recorded = advance(
                spec, record, part.length, values, progress, watched, jnp.int32(part.first), train
            )
            spending = spending if watched is None else watched
            _check_network(spec, progress)
            recorded = to_host(recorded)
            history.add_steps(recorded, part.first)
            _log(control, recorded, part.first + part.length)
            control.report(part.first + part.length)
        history.position += 1
        history.seconds = before + time.perf_counter() - began
        if history.all_diverged:
            break
        _keep(control, history, progress, spending)

    evaluating = time.perf_counter()
    at_budgets = to_host(evaluate_at_budgets(spec, spending, test)) if budgets.size else {}
    history.evaluation_seconds += time.perf_counter() - evaluating
    history.seconds = before + time.perf_counter() - began
    return history.records(times, bandwidth, degree.astype(np.int64), at_budgets, initial)


def _largest_messages(spec: Spec, values: RunValues) -> np.ndarray:
    """The largest message of each run, in numbers of 32 bits."""
    method, own = spec.rules.method, to_host(values.method)
    runs = len(values.r)
    each = [jax.tree.map(lambda leaf, run=run: leaf[run], own) for run in range(runs)]
    return np.array([largest_message(method, spec.rules.model.size, one) for one in each], float)


def _evaluate_initial(
    spec: Spec, values: RunValues, states: State, test: Samples, known: InitialEvaluations | None
) -> dict[str, np.ndarray]:
    """Evaluations of the initial models, which runs of the same seed share."""
    known = {} if known is None else known
    keys = [key.tobytes() for key in to_host(jax.random.key_data(values.key))]
    if any(key not in known for key in keys):
        found = to_host(evaluate(spec, states, test))
        for run, key in enumerate(keys):
            known[key] = {name: array[run] for name, array in found.items()}
    return {name: np.stack([known[key][name] for key in keys]) for name in known[keys[0]]}


def _check_network(spec: Spec, progress: Progress) -> None:
    """Raise if the dynamics have found something wrong."""
    if spec.dynamics.problem is None:
        return
    if wrong := spec.dynamics.problem(to_host(progress.network)):
        name = next((name for name, one in DYNAMICS.items() if one is spec.dynamics), "")
        raise ExperimentError(f"dynamics={name!r}: {wrong}")


class Part(NamedTuple):
    """A part of the plan: some iterations, or an evaluation if there are none."""

    first: int
    length: int


def plan(times: np.ndarray) -> Iterator[Part]:
    """The parts of a run, from the first evaluation to the last.

    Example:
        >>> [tuple(part) for part in plan(np.array([0, 30, 40]))]
        [(0, 0), (0, 30), (30, 0), (30, 10), (40, 0)]
    """
    done = 0
    for end in map(int, times):
        for first, length in chunks(done, end):
            yield Part(first, length)
        yield Part(end, 0)
        done = end


def evaluation_times(experiment: Experiment) -> np.ndarray:
    """The iterations to evaluate at: before the first, early ones, every multiple, and after the last.

    Example:
        >>> evaluation_times(Experiment(iterations=70, eval_every=30, early_evaluations=2)).tolist()
        [0, 7, 15, 30, 60, 70]
    """
    end, every = experiment.iterations, experiment.eval_every
    early = [every >> halvings for halvings in range(1, experiment.early_evaluations + 1)]
    return np.unique([*(time for time in early if time < end), *range(0, end, every), end])


def chunks(first: int, end: int) -> Iterator[tuple[int, int]]:
    """Chunks (first, length) of almost equal length between two evaluations, short enough for progress.

    There are at most two different lengths, because each length is a compilation.

    Example:
        >>> list(chunks(1000, 2200))
        [(1000, 400), (1400, 400), (1800, 400)]
    """
    pieces = -(-(end - first) // _LONGEST_CHUNK)
    edges = [first + (end - first) * piece // pieces for piece in range(pieces + 1)] if pieces else []
    for begin, stop in itertools.pairwise(edges):
        yield begin, stop - begin


def _begin(
    spec: Spec, values: RunValues, checkpoints: Checkpoints | None, filled_from: int | None
) -> tuple[Progress, Spending, History]:
    """The initial progress, or that of the checkpoint, whatever its number of accelerators."""
    progress = initialise(spec, values)
    runs, budgets = values.budgets[0].shape
    weights = progress.state.weights
    spending = jax.jit(start_spending, static_argnums=(0, 1))(runs, budgets, weights)
    saved = checkpoints.newest() if checkpoints else None
    if saved is None:
        return progress, spending, History(runs, spec.devices)
    saved = _refilled(saved, filled_from or runs, runs)
    stored = (
        from_leaves(progress, saved["progress"]),
        from_leaves(spending, saved["spending"]) if budgets else spending,
    )
    progress, spending = place_runs(spec.layout, stored)
    return progress, spending, History.from_tree(saved["history"])


def _refilled(saved: dict[str, Any], distinct: int, runs: int) -> dict[str, Any]:
    """A checkpoint of a batch, padded with copies of its last run to another size.

    A batch is padded to a multiple of the number of accelerators, which may have changed.
    """

    def fit(leaf: np.ndarray) -> np.ndarray:
        if not leaf.ndim or len(leaf) == runs:
            return leaf
        return np.concatenate(
            [leaf[:distinct], np.repeat(leaf[distinct - 1 : distinct], runs - distinct, 0)]
        )

    return jax.tree.map(fit, saved)


def _keep(control: Control, history: History, progress: Progress, spending: Spending) -> None:
    """Save a checkpoint when it is due, or when the run is to stop."""
    stop = control.should_stop()
    if control.checkpoints and (stop or control.checkpoints.due()):
        # Copies: a view of the buffers would keep the next chunk from writing into them.
        progress, spending = to_host(jax.tree.map(jnp.copy, (progress, spending)))
        tree: dict[str, Any] = {"history": history.to_tree(), "progress": leaves_by_path(progress)}
        if spending.reached.shape[1]:
            tree["spending"] = leaves_by_path(spending)
        control.checkpoints.save(history.position, tree)
    if stop:
        raise KeyboardInterrupt


def _log(control: Control, found: dict[str, np.ndarray], iteration: int) -> None:
    """Log the mean of each metric over devices, and over the iterations of a chunk."""
    if control.logger:
        means = {name: float(array.mean()) for name, array in found.items() if _is_logged(name)}
        control.logger.log(means, iteration)


def _is_logged(name: str) -> bool:
    return name in VARIABLES and VARIABLES[name].logged


def _check_graphs_fit(experiment: Experiment) -> None:
    each = 2 * experiment.devices**2  # physical links, and those in use
    if experiment.iterations * each > _TRACE_LIMIT:
        raise ExperimentError(
            f"iterations={experiment.iterations}: the graphs of {experiment.devices:,} devices would "
            f"take {experiment.iterations * each / 2**30:.1f} GiB; "
            f"try {_TRACE_LIMIT // each:,} iterations or fewer with an audit or a trace"
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
