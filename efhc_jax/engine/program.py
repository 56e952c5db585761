"""The compiled program: a batch of runs, started, advanced by many iterations, and evaluated.

Every function here takes runs stacked along the first axis, and is compiled once per `Spec` and shape;
the values of the runs and the data are arguments.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from efhc_jax.engine.budgets import Spending, spend
from efhc_jax.engine.mixing import metropolis_weights
from efhc_jax.engine.packing import Packed, pack, unpack
from efhc_jax.engine.recording import Iteration, Recorder
from efhc_jax.engine.sharding import Layout, spread
from efhc_jax.engine.step import Inputs, Rules, State, rates_at, start, step
from efhc_jax.engine.values import RunValues
from efhc_jax.network.dynamics.base import Dynamics, Memory, Snapshot, first_memory
from efhc_jax.participation import always
from efhc_jax.participation.base import Participation, devices_taking_part, links_taking_part
from efhc_jax.randomness.draws import draw_coins, draw_models, draw_samples

UNROLL = 2  # two steps alternate between two buffers of W; a single one would copy it


class Spec(NamedTuple):
    """Static settings, which determine shapes and code and therefore a compilation."""

    rules: Rules
    devices: int
    batch_size: int
    dynamics: Dynamics
    layout: Layout
    texts: tuple[Any, ...] = ()  # parameters of members that are texts
    participation: Participation = always.PARTICIPATION


class Progress(NamedTuple):
    """All that the next iteration of a run needs: whatever `initialise` gives, a checkpoint restores."""

    state: State
    network: Memory  # of the dynamics


class Samples(NamedTuple):
    """Images and labels, on the accelerator."""

    images: Any  # uint8 (sample, height, width)
    labels: Any  # int32 (sample,)


def laid_out(spec: Spec, layout: Layout) -> Spec:
    """The same program with another layout."""
    return spec._replace(rules=spec.rules._replace(rows=layout.rows), layout=layout)


def in_full_precision(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compute matrix products in full precision; accelerators use a lower one by default."""

    @functools.wraps(function)
    def traced(*arguments: Any, **named: Any) -> Any:
        with jax.default_matmul_precision("highest"):
            return function(*arguments, **named)

    return traced


@functools.partial(jax.jit, static_argnames="spec")
def initialise(spec: Spec, runs: RunValues) -> Progress:
    """The progress of all runs before their first iteration."""

    def one(run: RunValues) -> Progress:
        weights = draw_models(run.key, spec.rules.model.init, spec.devices)
        memory = first_memory(spec.dynamics, run.network, run.dynamics)
        begin = jnp.int32(0)
        first, _ = spec.dynamics.at(run.network, run.dynamics, memory, begin)
        coin = draw_coins(run.key, begin, spec.devices)
        return Progress(start(spec.rules, run, weights, first, coin), memory)

    return spread(spec.layout, one)((runs,))


@functools.partial(
    jax.jit, static_argnames=("spec", "record", "length"), donate_argnames=("progress", "spending")
)
@in_full_precision
def advance(
    spec: Spec,
    record: Recorder,
    length: int,
    runs: RunValues,
    progress: Progress,
    spending: Spending | None,
    first: Array,
    train: Samples,
) -> tuple[Progress, Spending | None, dict[str, Array]]:
    """Advance all runs by `length` iterations from iteration `first`, and return the recorded values.

    If `spending` is given, budgets are checked, at the cost of a copy of the models per iteration.
    """

    def one(
        run: RunValues, progress: Progress, spending: Spending | None, first: Array, train: Samples
    ) -> tuple[Progress, Spending | None, dict[str, Array]]:
        iterations = first + jnp.arange(length)
        sample = jax.vmap(functools.partial(_samples_of, spec, run))
        coin = jax.vmap(lambda k: draw_coins(run.key, k, spec.devices))
        rates = jax.vmap(lambda k: rates_at(spec.rules, run, k))

        def network_at(memory: Memory, iteration: Array) -> tuple[Snapshot, Array, Memory]:
            network, memory = spec.dynamics.at(run.network, run.dynamics, memory, iteration)
            return network, metropolis_weights(network.links, network.neighbors), memory

        always = network_at(progress.network, first) if spec.dynamics.fixed else None

        def body(carry: Any, drawn: Any) -> tuple[Any, Packed]:
            (state, memory), spending = carry
            iteration, sample, coin, rates = drawn
            images, labels = train.images[sample], train.labels[sample]
            network, link_weights, memory = always or network_at(memory, iteration)
            chosen = (run.taking_part, run.participation, run.key, iteration, network)
            inputs = Inputs(
                iteration,
                network,
                link_weights,
                images,
                labels,
                coin,
                rates,
                devices_taking_part(spec.participation, *chosen),
                links_taking_part(spec.participation, *chosen),
            )
            state, info = step(spec.rules, run, state, inputs)
            if spending is not None:
                budgets, rest = run.budgets
                time = info.transmission_time
                spending = spend(spending, budgets, time, iteration, state.weights, rest)
            recorded = pack(record(Iteration(sample, inputs, info, state)))
            return (Progress(_settled(state), memory), spending), recorded

        drawn = (iterations, sample(iterations), coin(iterations), rates(iterations))
        begin = (progress, spending)
        (progress, spending), recorded = jax.lax.scan(body, begin, drawn, unroll=UNROLL)
        return progress, spending, unpack(recorded)

    return spread(spec.layout, one)((runs, progress, spending), (first, train))


def _samples_of(spec: Spec, run: RunValues, iteration: Array) -> Int[Array, "*steps device batch"]:
    """The mini-batches of an iteration; with several local steps, along a new first axis."""
    steps = spec.rules.local_steps
    if steps == 1:
        return draw_samples(run.key, iteration, run.shards, spec.batch_size)
    draw = jax.vmap(lambda k: draw_samples(run.key, k, run.shards, spec.batch_size))
    return draw(iteration * steps + jnp.arange(steps, dtype=jnp.int32))


def _settled(state: State) -> State:
    """The state, with W and Ŵ complete before the next iteration begins.

    Otherwise a GPU's program computes parts of an iteration again in the next one, from models that then
    have to be kept: it copies W.
    """
    weights, last_broadcast, *more = jax.lax.platform_dependent(
        state.weights,
        state.last_broadcast,
        *jax.tree.leaves((state.method, state.optimizer)),
        cpu=lambda *models: models,
        default=lambda *models: jax.lax.optimization_barrier(models),
    )
    method, optimizer = jax.tree.unflatten(jax.tree.structure((state.method, state.optimizer)), more)
    return state._replace(
        weights=weights, last_broadcast=last_broadcast, method=method, optimizer=optimizer
    )
