"""One iteration in matrix form, in the order of Algorithm 1 of the paper.

W(k+1) = P(k)·W(k) − α(k)·G(k) for EF-HC; other methods update W in their own way (`efhc_jax/methods`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Int, UInt8

from efhc_jax.engine.deviation import distance, from_distance
from efhc_jax.engine.messages import Traffic, both_ways, one_way
from efhc_jax.engine.mixing import average, computed_once
from efhc_jax.engine.training import Trained, Training, train
from efhc_jax.engine.values import RunValues
from efhc_jax.methods import gossip
from efhc_jax.methods.base import Method, Turn
from efhc_jax.methods.base import first_memory as first_memory_of_method
from efhc_jax.models.base import Model
from efhc_jax.models.rows import for_each, parameters_of
from efhc_jax.network.dynamics.base import Snapshot
from efhc_jax.network.links import used_links
from efhc_jax.network.slots import at_either_end
from efhc_jax.optimizers.base import Optimizer
from efhc_jax.optimizers.base import start as start_optimizer
from efhc_jax.policies.base import Policy, Situation, decide, first_memory
from efhc_jax.randomness.draws import random_words
from efhc_jax.randomness.streams import Stream
from efhc_jax.schedules.base import Timed, value_at


class Rules(NamedTuple):
    """Static settings of the compiled program."""

    model: Model
    policies: tuple[Policy, ...]
    norm_order: float  # q
    learning_rate: Timed  # schedule of α
    threshold: Timed | None = None  # of γ; None where γ = α
    rows: Mesh | None = None  # the accelerators that the devices are distributed over, if any
    method: Method = gossip.METHOD
    optimizer: Optimizer | None = None  # of local training; None for plain gradient descent
    local_steps: int = 1  # τ

    @property
    def training(self) -> Training:
        """The settings of local training."""
        return Training(self.model, self.optimizer, self.local_steps)


class State(NamedTuple):
    """The state that the next iteration needs."""

    weights: Float[Array, "device *parameters"]  # W(k)
    last_broadcast: Float[Array, "device *parameters"]  # Ŵ(k), or X̂(k) of a method with copies
    distance: Float[Array, "device"]  # of W(k) from Ŵ(k), which gives e(k); 0 of a method with copies
    adjacency: Bool[Array, "row slot"] | None  # A(k−1); None if the network tells
    broadcasts: Int[Array, "device"]  # number of broadcasts so far
    memories: tuple[Any, ...]  # of the policies
    method: Any = ()  # memory of the method
    optimizer: Any = ()  # memory of the optimizer


class Rates(NamedTuple):
    """Step size and threshold decay of an iteration."""

    learning_rate: Float[Array, ""]  # α(k)
    decay: Float[Array, ""]  # γ(k)


class Inputs(NamedTuple):
    """Inputs of iteration k."""

    iteration: Int[Array, ""]  # k
    network: Snapshot
    link_weights: Float[Array, "row slot"]  # β_ij of the network
    images: UInt8[Array, "*steps device batch height width"]  # of each local step, if there are several
    labels: Int[Array, "*steps device batch"]
    coin: Float[Array, "device"]  # uniform on [0, 1)
    rates: Rates
    takes_part: Bool[Array, "device"] | None = None  # devices that may train; None for all
    open_links: Bool[Array, "row slot"] | None = None  # links that may be used; None for all


class Info(NamedTuple):
    """Diagnostics of iteration k. Those that a run does not record cost nothing."""

    fired: Bool[Array, "device"]  # v_i(k)
    used_links: Bool[Array, "row slot"]  # v_ij(k)
    deviation: Float[Array, "device"]  # e_i(k); not finite where a model is not
    messages: Int[Array, ""]  # each over one link, in one direction
    bits: Float[Array, ""]  # of all messages
    transmission_time: Float[Array, ""]
    new_links: Bool[Array, "row slot"]  # links used only because they are new (Event 1)
    new_link_time: Float[Array, ""]  # their part of the transmission time
    gradient_norm: Float[Array, "device"]  # ‖g_i‖₂
    largest_gradient: Float[Array, "device"]  # ‖g_i‖∞
    train_loss: Float[Array, ""]  # mean over devices, at W(k)


def rates_at(rules: Rules, run: RunValues, iteration: Int[Array, ""]) -> Rates:
    """α(k) and γ(k)."""
    learning_rate = value_at(rules.learning_rate, run.learning_rate, iteration)
    if rules.threshold is None or run.threshold is None:
        return Rates(learning_rate, learning_rate)  # γ = α
    return Rates(learning_rate, value_at(rules.threshold, run.threshold, iteration))


def start(
    rules: Rules,
    run: RunValues,
    weights: Float[Array, "device *parameters"],
    network: Snapshot,
    coin: Float[Array, "device"],
) -> State:
    """The state before the first iteration: Ŵ(0) = W(0), and no link of A(0) is new.

    Nothing is known of the models of others, so copies begin at 0.
    """
    devices, method = len(weights), rules.method
    still, idle = jnp.zeros(devices, weights.dtype), jnp.zeros(devices, jnp.int32)
    links = network.links if network.previous is None else None
    last_broadcast = jnp.zeros_like(weights) if method.keeps_copies else weights
    state = State(weights, last_broadcast, still, links, idle, ())
    begin = jnp.int32(0)
    now = situation(rules, run, state, begin, coin, rates_at(rules, run, begin).decay)
    memories = (
        first_memory(policy, now, parameters)
        for policy, parameters in zip(rules.policies, run.policies, strict=True)
    )
    return state._replace(
        memories=tuple(memories),
        method=first_memory_of_method(method, weights, run.method),
        optimizer=()
        if rules.optimizer is None
        else start_optimizer(rules.optimizer, run.optimizer, weights),
    )


def step(rules: Rules, run: RunValues, state: State, inputs: Inputs) -> tuple[State, Info]:
    """Advance all devices by one iteration."""
    method, weights, last_broadcast = rules.method, state.weights, state.last_broadcast
    adjacency, neighbors = inputs.network.links, inputs.network.neighbors
    training = inputs.network.training
    if inputs.takes_part is not None:
        training &= inputs.takes_part

    # A device with copies decides after local training, by its distance from its copy.
    trained, copied = None, state
    if method.keeps_copies:
        trained = _train(rules, run, state, inputs, training)
        # The other way round than the method's difference, or both would wait for it to be stored.
        gap = distance(last_broadcast, trained.added(weights), rules.norm_order)
        copied = state._replace(distance=gap)

    # Event 2: devices that have moved far enough from their last broadcast fire.
    now = situation(rules, run, copied, inputs.iteration, inputs.coin, inputs.rates.decay)
    choice = _decide(rules.policies, run, now, state.memories)
    if method.always_sends:
        # Not a constant: the distance then comes first, and copies are updated in place.
        everybody, nobody = ~(copied.distance < 0), jnp.zeros((), bool)
        choice = choice._replace(fired=everybody, uses_new_links=~nobody, coordinated=nobody)

    # Event 1: a new link is used even if neither end fires.
    before = state.adjacency if inputs.network.previous is None else inputs.network.previous
    assert before is not None
    known = jnp.where(choice.uses_new_links, before, adjacency)
    links = used_links(adjacency, known, choice.fired, neighbors) & ~choice.coordinated
    if inputs.open_links is not None:
        links &= inputs.open_links

    # Event 3: average over the links in use, or over all devices if there is a coordinator.
    held = [weights]

    def hold(x: Array) -> Array:
        if not any(x is one for one in held):
            held.append(x := computed_once(x, inputs.iteration))
        return x

    def mix(x: Array) -> Array:
        coordinated = choice.coordinated
        return average(hold(x), inputs.link_weights, links, coordinated, neighbors, rules.rows)

    def mix_all(x: Array) -> Array:
        nobody = jnp.zeros_like(choice.coordinated)
        return average(hold(x), inputs.link_weights, adjacency, nobody, neighbors, rules.rows)

    def words(positions: Array) -> Array:
        return random_words(run.key, Stream.COMPRESSION, inputs.iteration, positions)

    # Event 4: local training, with gradients at the models before averaging.
    trained = trained or _train(rules, run, state, inputs, training)
    new_weights, memory, copies, bits = method.update(
        Turn(
            iteration=inputs.iteration,
            weights=weights,
            last_broadcast=last_broadcast,
            fired=choice.fired,
            gradient=trained.gradient,
            training=training,
            learning_rate=inputs.rates.learning_rate,
            trained=trained.added,
            hold=hold,
            mix=mix,
            mix_all=mix_all,
            words=words,
        ),
        run.method,
        state.method,
    )
    new_broadcast = copies
    if new_broadcast is None:
        new_broadcast = jnp.where(for_each(choice.fired, weights), weights, last_broadcast)
    new = State(
        weights=new_weights,
        last_broadcast=new_broadcast,
        # Computed here and not in the next iteration, because both are in use here anyway.
        distance=state.distance
        if method.keeps_copies
        else distance(new_weights, new_broadcast, rules.norm_order),
        adjacency=None if state.adjacency is None else adjacency,
        broadcasts=state.broadcasts + choice.fired,
        memories=choice.memories,
        method=memory,
        optimizer=trained.memory,
    )
    new_links = links & ~at_either_end(choice.fired, neighbors)
    traffic = Traffic(adjacency, neighbors, links, new_links, choice.fired, run.bandwidth)
    if bits is None:
        sent = both_ways(traffic, method.arrays * rules.model.size, choice.coordinated)
    else:
        sent = one_way(traffic, rules.model.size, bits, adjacency & ~known)
    gradient = trained.gradient
    return new, Info(
        fired=choice.fired,
        used_links=links,
        deviation=now.deviation,
        messages=sent.messages,
        bits=sent.bits,
        transmission_time=sent.time,
        new_links=new_links,
        new_link_time=sent.new_link_time,
        gradient_norm=jnp.sqrt(jnp.sum(gradient**2, axis=parameters_of(gradient))),
        largest_gradient=jnp.max(jnp.abs(gradient), axis=parameters_of(gradient)),
        train_loss=jnp.mean(trained.loss),
    )


def _train(
    rules: Rules, run: RunValues, state: State, inputs: Inputs, training: Bool[Array, "device"]
) -> Trained:
    """Local training from W(k)."""
    rate = inputs.rates.learning_rate
    images, labels = inputs.images, inputs.labels
    return train(
        rules.training, state.weights, images, labels, training, rate, run.optimizer, state.optimizer
    )


def situation(
    rules: Rules,
    run: RunValues,
    state: State,
    iteration: Int[Array, ""],
    coin: Float[Array, "device"],
    decay: Float[Array, ""],
) -> Situation:
    """The quantities that the policies of a run can use."""
    return Situation(
        iteration=iteration,
        deviation=from_distance(state.distance, rules.model.size, rules.norm_order),
        decay=decay,
        r=run.r,
        bandwidth=run.bandwidth,
        coin=coin,
        broadcasts=state.broadcasts,
    )


class _Choice(NamedTuple):
    fired: Bool[Array, "device"]
    uses_new_links: Bool[Array, ""]
    coordinated: Bool[Array, ""]
    memories: tuple[Any, ...]


def _decide(
    policies: tuple[Policy, ...], run: RunValues, now: Situation, memories: tuple[Any, ...]
) -> _Choice:
    """The decision of the chosen policy.

    All policies are evaluated, because they are cheap and the choice may differ between the runs of a
    batch.
    """
    every = zip(policies, run.policies, memories, strict=True)
    decided = [decide(policy, now, parameters, memory) for policy, parameters, memory in every]
    return _Choice(
        fired=_of_chosen(run.policy, [fired for fired, _ in decided]),
        uses_new_links=_of_chosen(run.policy, [policy.uses_new_links for policy in policies]),
        coordinated=_of_chosen(run.policy, [policy.coordinated for policy in policies]),
        memories=tuple(memory for _, memory in decided),
    )


def _of_chosen(chosen: Int[Array, ""], values: Sequence[Any]) -> Array:
    """The value of the chosen policy, by comparisons, which compilers fuse with what uses it."""
    found = jnp.asarray(values[0])
    for position, value in enumerate(values[1:], start=1):
        found = jnp.where(chosen == position, value, found)
    return found
