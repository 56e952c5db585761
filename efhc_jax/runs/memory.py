"""Memory estimates, so that a run or a sweep that does not fit is rejected before it starts.

Nothing is compiled for an estimate: compilation takes seconds, needs the network (which may be what does
not fit), and serves one batch size only. Instead, the arrays of a model are taken from its trace
(`liveness.py`), and the others are counted, with factors that were fitted to XLA's `memory_analysis()`
and to the peaks of whole processes. `python -m benchmarks.memory` compares estimates with peaks.
"""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from efhc_jax.data import Dataset
from efhc_jax.engine.gradients import loss_and_gradient
from efhc_jax.engine.program import Spec
from efhc_jax.engine.recording import Recorder, record_summary, record_trace
from efhc_jax.engine.sharding import hardware
from efhc_jax.errors import ExperimentError
from efhc_jax.experiment.experiment import Experiment
from efhc_jax.members import make_parameters
from efhc_jax.members.tracing import as_arrays
from efhc_jax.methods.base import first_memory
from efhc_jax.models.base import Model, logits_of_all, normalise
from efhc_jax.network.dynamics import DYNAMICS
from efhc_jax.network.graph_files import read_graphs
from efhc_jax.network.slots import Storage, stored
from efhc_jax.network.topologies import expected_degrees
from efhc_jax.optimizers.base import start as start_optimizer
from efhc_jax.runs.liveness import Held, held_by
from efhc_jax.runs.machine import free_memory, free_on_host, gigabytes, resident_memory
from efhc_jax.runs.prepare import links_of, network_settings

_MB = 10**6
_SHARE = 0.8  # of the free memory is for a batch, the rest for other processes
_MOST_RUNS_ON_CPU = 64  # larger batches are not faster, and a crash would cost more
_MOST_RUNS = 1024
_LONGEST_SEARCH = 10**7  # runs

# Of the process, measured.
_RUNTIME = 240 * _MB  # Python, JAX and the engine
_FINISHING = 120 * _MB  # xarray, netCDF and Matplotlib, which come last
_RETAINED = 200 * _MB  # by the allocator, of small arrays that were freed
_CORE = 90 * _MB  # of each further core that is a device of its own
_PROGRAMS = 135 * _MB  # to compile and keep the programs of a run, without the model
_OPERATION = 0.4 * _MB  # of each operation in a model's trace
_LIST_PROGRAM, _LIST_SLOT = 30 * _MB, 1 * _MB  # mixing over neighbour lists is written out slot by slot
_COPIES_OF_RESULTS = 3  # collected, joined, and written

# Of each run on its accelerator, fitted to XLA's analysis of the programs.
_COPIES_TO_STEP = {True: 3.5, False: 3.2}  # of W, over a matrix of links and over lists
_COPIES_OF_FURTHER_ROWS = 1.3  # of the rows of split lists beyond one per device, as long as models
_MATRIX_BYTES, _LIST_BYTES = 20, 40  # of each slot while a step is computed
_CHANGING_BYTES = {"static": 0, "periodic": 0, "churn": 0, "trace": 0, "mobility": 65}  # in addition
_OTHERWISE_CHANGING = 20  # for any other dynamics
_DRAWN_BYTES = 24  # of each sample of a mini-batch; those of a chunk are drawn together
_CHUNK = 500  # iterations at most
_COUNTED = 20_000_000  # devices above which degrees are not counted: their models alone are too large
_SPARSE = 8  # slots of each device that are assumed then

# Of each link, and of each slot, while a network is drawn on the host.
_LINK_BYTES, _NETWORKX_LINK_BYTES = 100, 300
_SLOT_BYTES, _TURN_BYTES = 12, 25


class Estimate(NamedTuple):
    """Peak memory of a batch of runs in bytes.

    Attributes:
        fixed: on each accelerator, independent of the batch: the dataset.
        kept: of each run, throughout: its models, those at budgets, its network and its split.
        stepping: of each run, while the batch advances: results of blocks and recorded values.
        in_block: of each run of a block, while the block advances.
        block: number of runs in a block; 0 for all.
        evaluating: of each run, while it is evaluated.
        evaluated: number of runs that are evaluated at once; 0 for all.
        runtime: of the process: Python and JAX.
        finishing: of the process, when results are written: the libraries for that.
        programs: of the process: compiled programs.
        host: of the process: the dataset, and the results of all runs.
        building: of the process, while it draws a network, before the first iteration.
        parts: the peak of a single run by what it is for, for messages.
        subject: the setting to change and what does not fit, for messages.
        advice: what to try instead, for messages.
    """

    fixed: int = 0
    kept: int = 0
    stepping: int = 0
    in_block: int = 0
    block: int = 0
    evaluating: int = 0
    evaluated: int = 0
    runtime: int = 0
    finishing: int = 0
    programs: int = 0
    host: int = 0
    building: int = 0
    parts: tuple[tuple[str, int], ...] = ()
    subject: str = "devices and model: a single run"
    advice: str = "fewer devices or a smaller model"

    def peak(self, runs: int) -> int:
        """Peak on one accelerator that holds this many runs."""
        advancing = runs * self.stepping + min(runs, self.block or runs) * self.in_block
        evaluating = min(runs, self.evaluated or runs) * self.evaluating
        return self.fixed + runs * self.kept + max(advancing, evaluating)

    def in_process(self, runs: int, accelerators: int = 1) -> int:
        """Peak of the process with this many runs on each accelerator; CPU cores count, GPUs do not."""
        own = self.runtime + self.programs + self.host
        if jax.default_backend() != "cpu":
            return own + max(self.building, self.finishing)
        work = max(self.building, accelerators * self.peak(runs))
        after_work = min(work, _RETAINED) + self.finishing
        return own + (accelerators - 1) * _CORE + max(work, after_work)


class _Network(NamedTuple):
    """Storage of the network of a run."""

    storage: Storage
    links: int
    graphs: int = 0  # over time
    largest_degree: int = 0


def estimate(
    runs: Sequence[Experiment], dataset: Dataset, spec: Spec, record: Recorder = record_summary
) -> Estimate:
    """Estimate of the peak memory of a program.

    Args:
        runs: all runs that share the program.
        dataset: their training data.
        spec: the program.
        record: the values recorded in each iteration.
    """
    first = runs[0]
    itemsize = jnp.zeros(()).dtype.itemsize
    devices, model, budgets = first.devices, spec.rules.model, len(first.budgets)
    network = _network_of(runs)
    rows_of_links, slots_of_row, is_matrix = network.storage
    slots = rows_of_links * slots_of_row

    models = devices * model.size * itemsize
    in_step = _gradients(model, devices, spec.batch_size, dataset.image_shape, itemsize)
    copies = _COPIES_TO_STEP[is_matrix] * models + max(0, in_step.bytes - models)
    copies += _COPIES_OF_FURTHER_ROWS * (rows_of_links - devices) * model.size * itemsize
    evaluation, operations = _evaluation(model, devices, budgets, dataset, models)
    if spec.layout.rows is not None:  # part of W on each accelerator, and all of it while it mixes
        rows = spec.layout.rows.shape["rows"]
        gathered, models, slots = models, models // rows, slots // rows
        copies, evaluation = copies / rows + gathered, evaluation // rows

    own = _of_members(spec, devices)  # of the method and the optimizer
    copies += own
    linked = slots * (2 + 4 * (not is_matrix) + network.graphs)
    linked += slots * {"periodic": 4, "markov": 1, "mobility": 4}.get(first.dynamics, 0)
    mixing = slots * (_MATRIX_BYTES if is_matrix else _LIST_BYTES)
    mixing += slots * _CHANGING_BYTES.get(first.dynamics, _OTHERWISE_CHANGING)

    chunk = min(_CHUNK, first.eval_every, first.iterations)
    each_step = _recorded(first, record, models, itemsize)
    drawn = chunk * devices * spec.batch_size * _DRAWN_BYTES
    recorded = 2 * chunk * (each_step + devices)
    evaluations = first.iterations // first.eval_every + 2
    results = _COPIES_OF_RESULTS * (first.iterations * each_step + evaluations * devices * 3 * itemsize)

    data = sum(array.nbytes for array in dataset[1:])
    split = 4 * len(dataset.train_labels) + 12 * devices
    programs = _PROGRAMS + _OPERATION * (in_step.operations + operations)
    if not is_matrix:
        programs += _LIST_PROGRAM + _LIST_SLOT * slots_of_row
    building = network.links * _link_bytes(runs) + slots * (
        _TURN_BYTES if first.dynamics == "periodic" else 1 if is_matrix else _SLOT_BYTES
    )
    in_blocks = bool(spec.layout.block)
    parts = {
        "models": (2 + budgets) * models + own + int(copies),
        "network": max(2 * linked + mixing, building),
        "evaluation": max(0, evaluation - int(copies) - mixing),
        "results": len(runs) * results + recorded,
        "data": 2 * data,
        "program": _RUNTIME + _FINISHING + int(programs),
    }
    return Estimate(
        fixed=data,
        kept=(2 + budgets) * models + own + 2 * (linked + split),
        stepping=recorded + (int(copies) if in_blocks else 0),
        in_block=mixing + drawn + (0 if in_blocks else int(copies)),
        block=spec.layout.block,
        evaluating=evaluation,
        evaluated=spec.layout.for_evaluation.block,
        runtime=_RUNTIME,
        finishing=_FINISHING,
        programs=int(programs),
        host=data + len(runs) * results,
        building=building,
        parts=tuple(sorted(parts.items(), key=lambda part: -part[1])),
        subject=_subject(parts, runs),
        advice=_advice(parts, first, network, record),
    )


def _network_of(runs: Sequence[Experiment]) -> _Network:
    """The network as the runs of a batch store it; the largest decides."""
    kinds = {(e.graph, e.parameters("graph"), e.dynamics, e.connectivity, e.graph_file): e for e in runs}
    found = [_network_of_one(e) for e in kinds.values()]
    return _Network(
        max((each.storage for each in found), key=lambda storage: (storage.is_matrix, *storage[:2])),
        max(each.links for each in found),
        max(each.graphs for each in found),
        max(each.largest_degree for each in found),
    )


def _network_of_one(e: Experiment) -> _Network:
    graphs = 0
    settings, dynamics = network_settings(e), DYNAMICS[e.dynamics]
    if e.devices > _COUNTED:
        return _Network(Storage(e.devices, _SPARSE), e.devices * _SPARSE // 2)
    if e.dynamics == "trace":
        graphs = len(read_graphs(e.graph_file, e.devices, e.iterations).times)
    degrees = None
    if dynamics.links is None:
        degrees = expected_degrees(e.graph, settings, e.parameters("graph"))
    if degrees is None:  # of a user's own: unknown before it is drawn
        degrees = np.bincount(links_of(e).ravel(), minlength=e.devices)
    room = 0 if dynamics.room is None else dynamics.room(settings)
    largest = max(room, int(degrees.max(initial=0)))
    return _Network(stored(degrees, room), int(degrees.sum()) // 2, graphs, largest)


def _link_bytes(runs: Sequence[Experiment]) -> int:
    of_networkx = {"erdos_renyi", "watts_strogatz", "barabasi_albert"}
    return _NETWORKX_LINK_BYTES if of_networkx & {e.graph for e in runs} else _LINK_BYTES


@functools.lru_cache(maxsize=64)
def _gradients(
    model: Model, devices: int, batch_size: int, image_shape: tuple[int, int], itemsize: int
) -> Held:
    """Memory for the losses and gradients of all devices."""
    return held_by(
        functools.partial(loss_and_gradient, model),
        _rows_of(model, devices),
        jax.ShapeDtypeStruct((devices, batch_size, *image_shape), jnp.uint8),
        jax.ShapeDtypeStruct((devices, batch_size), jnp.int32),
    )


@functools.lru_cache(maxsize=64)
def _scores(model: Model, rows: int, images: int, image_shape: tuple[int, int], itemsize: int) -> Held:
    """Memory for the scores of some rows on some images."""
    return held_by(
        lambda rows, images: logits_of_all(model, rows, normalise(images)),
        _rows_of(model, rows),
        jax.ShapeDtypeStruct((images, *image_shape), jnp.uint8),
    )


def _rows_of(model: Model, rows: int) -> jax.ShapeDtypeStruct:
    one = jax.eval_shape(model.init, jax.random.key(0))
    return jax.ShapeDtypeStruct((rows, *one.shape), one.dtype)


def _evaluation(
    model: Model, devices: int, budgets: int, dataset: Dataset, models: int
) -> tuple[int, int]:
    """Bytes to evaluate a run with its models at budgets, and the number of operations."""
    itemsize = jnp.zeros(()).dtype.itemsize
    on_cpu = jax.default_backend() == "cpu"
    at_once = model.images_at_once if on_cpu else model.images_on_accelerators
    at_once = min(at_once, len(dataset.test_labels))
    scores = _scores(model, devices + 1, at_once, dataset.image_shape, itemsize)
    logits = (devices + 1) * at_once * dataset.classes * itemsize
    held = models + scores.bytes + 2 * logits  # all rows and their mean, and the temporaries of the loss
    if budgets:
        rows = budgets * devices
        held = max(held, _scores(model, rows, at_once, dataset.image_shape, itemsize).bytes)
    return held, scores.operations


def _of_members(spec: Spec, devices: int) -> int:
    """Bytes of the memories of the method and the optimizer."""
    rules = spec.rules

    def memories(weights: jax.Array) -> Any:
        method = make_parameters(rules.method, {})
        found = [first_memory(rules.method, weights, method)]
        if rules.optimizer is not None:
            own = as_arrays(rules.optimizer, make_parameters(rules.optimizer, {}))
            found.append(start_optimizer(rules.optimizer, own, weights))
        return found

    shapes = jax.eval_shape(memories, _rows_of(rules.model, devices))
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))


def _recorded(e: Experiment, record: Recorder, models: int, itemsize: int) -> int:
    """Bytes recorded in each iteration."""
    summary = 4 * itemsize + 12
    audit = 2 * e.devices**2 + e.devices * (1 + 2 * itemsize)
    trace = 2 * models + 4 * e.devices * e.batch_size
    if record is record_summary:
        return summary
    return summary + audit + (trace if record is record_trace else 0)


def _subject(parts: dict[str, int], runs: Sequence[Experiment]) -> str:
    if len(runs) > 1 and parts["results"] == max(parts.values()):
        return f"iterations={runs[0].iterations}: a sweep of {len(runs):,} runs"
    return f"devices={runs[0].devices}: a single run"


def _advice(parts: dict[str, int], e: Experiment, network: _Network, record: Recorder) -> str:
    largest = max(parts, key=lambda name: parts[name])
    if largest == "network" and e.dynamics == "trace":
        return "fewer devices, or a file with fewer graphs"
    if largest == "network":
        return (
            f"fewer devices, or a graph with a smaller largest degree (here {network.largest_degree:,})"
        )
    if largest == "results":
        return "fewer iterations or runs" + (", or no audit" if record is not record_summary else "")
    return "fewer devices or a smaller model" + (", or fewer budgets" if e.budgets else "")


def check_fits(
    experiment: Experiment, dataset: Dataset, spec: Spec, record: Recorder = record_summary
) -> None:
    """Raise if a single run does not fit into memory."""
    needs = estimate([experiment], dataset, spec, record)
    if not _fits(needs, 1, spec, 1.0):
        raise ExperimentError(_too_large(needs, spec))


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
    if not _fits(needs, 1, spec, 1.0):
        raise ExperimentError(_too_large(needs, spec))
    too_many = range(1, _LONGEST_SEARCH)
    most = bisect.bisect(too_many, False, key=lambda each: not _fits(needs, each, spec, _SHARE))
    fitting = max(1, most) * teams
    if asked is not None:
        if asked < 1:
            raise ExperimentError(f"runs_at_once={asked}: give a whole number of 1 or more")
        if asked % teams:
            raise ExperimentError(
                f"runs_at_once={asked}: cannot be divided over {hardware(teams)}; "
                f"give a multiple of {teams}"
            )
        if asked > fitting:
            needed, free = _needed_and_free(needs, asked // teams, spec)
            raise ExperimentError(
                f"runs_at_once={asked}: needs {gigabytes(needed)}, but "
                f"{gigabytes(free)} are free; try {fitting} or less"
            )
        return asked
    largest = _MOST_RUNS_ON_CPU if jax.default_backend() == "cpu" else _MOST_RUNS * teams
    batches = math.ceil(runs / min(fitting, max(largest, teams)))
    even = math.ceil(runs / batches)
    return math.ceil(even / teams) * teams


def _fits(needs: Estimate, runs: int, spec: Spec, share: float) -> bool:
    needed, free = _needed_and_free(needs, runs, spec)
    return needed <= share * free


def _needed_and_free(needs: Estimate, runs: int, spec: Spec) -> tuple[int, float]:
    """Bytes on one accelerator; of the process on a CPU, or if the host lacks memory."""
    here = accelerators_here(spec)
    in_process = needs.in_process(runs, here)
    if jax.default_backend() == "cpu":
        return in_process, free_memory() + min(resident_memory(), needs.runtime + needs.host)
    on_host = free_on_host() + min(resident_memory(), needs.runtime + needs.host)
    if in_process > on_host:
        return in_process, on_host
    return needs.peak(runs), free_memory()


def accelerators_here(spec: Spec) -> int:
    """Number of accelerators that this process computes on."""
    return max(1, spec.layout.accelerators // jax.process_count())


def _too_large(needs: Estimate, spec: Spec) -> str:
    needed, free = _needed_and_free(needs, 1, spec)
    parts = ", ".join(f"{name} {gigabytes(size)}" for name, size in needs.parts if size >= 0.1 * needed)
    parts = f" ({parts})" if parts else ""
    subject, advice, teams = needs.subject, needs.advice, spec.layout.teams
    if teams > 1 and subject.endswith("a single run"):
        subject += f" on each of {hardware(teams)}"
        if jax.default_backend() == "cpu" and needs.in_process(1) <= free:
            advice = "runs_at_once=1, one run after the other"
    return (
        f"{subject} needs about {gigabytes(needed)}{parts}, but {gigabytes(free)} are free; try {advice}"
    )
