"""The program of `efhc run` and `efhc sweep` for timing, and the same problem for the peers."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.peers.problem import Problem
from benchmarks.timing import Contender
from efhc_jax.data import Dataset
from efhc_jax.engine.evaluation import evaluate
from efhc_jax.engine.program import Progress, Samples, Spec, advance, initialise, laid_out
from efhc_jax.engine.recording import record_summary
from efhc_jax.engine.sharding import choose_layout, place_runs, place_shared, to_host
from efhc_jax.engine.values import RunValues
from efhc_jax.experiment.experiment import Experiment
from efhc_jax.network.slots import as_matrix, make_network
from efhc_jax.randomness.draws import draw_samples
from efhc_jax.runs.prepare import make_spec, prepare, stack


class Ours(NamedTuple):
    """Runs before their first iteration, and the compiled program that advances them."""

    experiment: Experiment  # of the first run; the others have the next seeds
    spec: Spec
    values: RunValues
    progress: Progress
    train: Samples
    iterations: int
    compiled: Any
    compile_seconds: float
    memory: int  # peak bytes on each accelerator

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.progress.state.weights)

    @property
    def parameters(self) -> int:
        """Number of parameters of their model, n."""
        return self.spec.rules.model.size

    def advanced(self, progress: Progress) -> tuple[Progress, dict[str, np.ndarray]]:
        """The progress after all iterations, and the recorded values; the given one is donated."""
        progress, _, recorded = self.compiled(self.values, progress, None, jnp.int32(0), self.train)
        recorded = to_host(recorded)
        return jax.block_until_ready(progress), recorded

    def fresh(self) -> Progress:
        """A copy of the initial progress."""
        return jax.block_until_ready(jax.tree.map(jnp.copy, self.progress))

    def contender(self) -> Contender:
        """All iterations, always from the initial models."""
        return Contender(self.advanced, self.fresh)


def one_run(
    experiment: Experiment, data: Dataset, iterations: int, links: np.ndarray | None = None
) -> Ours:
    """The program of `efhc run` between two evaluations, optionally with other links (link, 2)."""
    run = prepare(experiment, data)
    if links is not None:
        run = with_links(run, links, experiment.devices)
    return _compile(experiment, make_spec(experiment, data), [run], data, iterations)


def with_links(run: RunValues, links: np.ndarray, devices: int) -> RunValues:
    """The run on another network, by its links (link, 2)."""
    slots = make_network(links, devices)
    network = run.network._replace(adjacency=slots.links, neighbors=slots.neighbors)
    return run._replace(network=network)


def batch_of(experiment: Experiment, data: Dataset, iterations: int, runs: int) -> Ours:
    """The program of `efhc sweep` for runs of different seeds, in the layout that it would choose."""
    spec = make_spec(experiment, data)
    layout, whole = choose_layout(experiment.devices, spec.rules.model.size).fitted(runs)
    seeds = [experiment.seed + min(run, runs - 1) for run in range(whole)]
    values = [prepare(experiment.replace(seed=seed), data) for seed in seeds]
    return _compile(experiment, laid_out(spec, layout), values, data, iterations)


def _compile(
    experiment: Experiment, spec: Spec, each: list[RunValues], data: Dataset, iterations: int
) -> Ours:
    values = place_runs(spec.layout, stack(each, spec.dynamics))
    train = place_shared(spec.layout, Samples(data.train_images, data.train_labels))
    progress = jax.block_until_ready(initialise(spec, values))
    began = time.perf_counter()
    lowered = advance.lower(
        spec, record_summary, iterations, values, progress, None, jnp.int32(0), train
    )
    compiled = lowered.compile()
    seconds = time.perf_counter() - began
    memory = compiled.memory_analysis()
    total = 0 if memory is None else _peak(memory)
    return Ours(experiment, spec, values, progress, train, iterations, compiled, seconds, total)


def _peak(memory: Any) -> int:
    held = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
    return int(held - memory.alias_size_in_bytes)


def evaluation(ours: Ours, data: Dataset) -> Contender:
    """The evaluation of all runs on the test set."""
    test = place_shared(ours.spec.layout, Samples(data.test_images, data.test_labels))
    compiled = evaluate.lower(ours.spec, ours.progress.state, test).compile()
    return Contender(lambda _: to_host(compiled(ours.progress.state, test)))


def problem_of(ours: Ours, data: Dataset) -> Problem:
    """The same runs for the peers: the same models, graphs, thresholds and mini-batches."""
    batch_size, iterations = ours.spec.batch_size, jnp.arange(ours.iterations)

    @jax.jit
    def samples_of(values: RunValues) -> Any:
        def one(run: RunValues) -> Any:
            draw = jax.vmap(lambda k: draw_samples(run.key, k, run.shards, batch_size))
            return draw(iterations)

        return jax.vmap(one)(values)

    weights, bandwidth = to_host((ours.progress.state.weights, ours.values.bandwidth))
    neighbors, matrices = ours.values.network.neighbors, ours.values.network.adjacency
    if neighbors is not None:
        matrices = jax.vmap(as_matrix)(matrices, neighbors)
    e = ours.experiment
    schedule = e.parameters("learning_rate_schedule")
    return Problem(
        model=e.model,
        weights=np.array(weights).reshape(*weights.shape[:2], -1),
        adjacency=np.array(to_host(matrices)),
        bandwidth=np.array(bandwidth),
        threshold=e.r / bandwidth.astype(np.float64),
        samples=np.array(to_host(samples_of(ours.values))),
        images=data.train_images,
        labels=data.train_labels,
        learning_rate=(e.learning_rate, schedule.offset, schedule.exponent),
    )
