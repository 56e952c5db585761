"""One iteration of EF-HC in matrix form, in the order of Algorithm 1 of the paper.

W(k+1) = P(k)·W(k) − α(k)·G(k)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Int, UInt8

from efhc_jax.engine.deviation import distance, for_each, from_distance, parameters_of
from efhc_jax.engine.gradients import loss_and_gradient
from efhc_jax.engine.mixing import average
from efhc_jax.engine.values import RunValues
from efhc_jax.models.base import Model
from efhc_jax.network.dynamics.base import Snapshot
from efhc_jax.network.links import used_links
from efhc_jax.network.slots import at_either_end
from efhc_jax.policies.base import Policy, Situation, decide, first_memory
from efhc_jax.resources.bandwidth import transmission_time, upload_time
from efhc_jax.schedules.base import Timed, value_at


class Rules(NamedTuple):
    """Static settings of the compiled program."""

    model: Model
    policies: tuple[Policy, ...]
    norm_order: float  # q
    learning_rate: Timed  # schedule of α
    threshold: Timed | None = None  # of γ; None where γ = α
    rows: Mesh | None = None  # the accelerators that the devices are distributed over, if any


class State(NamedTuple):
    """The state that the next iteration needs."""

    weights: Float[Array, "device *parameters"]  # W(k)
    last_broadcast: Float[Array, "device *parameters"]  # Ŵ(k)
    distance: Float[Array, "device"]  # of W(k) from Ŵ(k), which gives e(k)
    adjacency: Bool[Array, "row slot"] | None  # A(k−1); None if the network tells
    broadcasts: Int[Array, "device"]  # number of broadcasts so far
    memories: tuple[Any, ...]  # of the policies


class Rates(NamedTuple):
    """Step size and threshold decay of an iteration."""

    learning_rate: Float[Array, ""]  # α(k)
    decay: Float[Array, ""]  # γ(k)


class Inputs(NamedTuple):
    """Inputs of iteration k."""

    iteration: Int[Array, ""]  # k
    network: Snapshot
    link_weights: Float[Array, "row slot"]  # β_ij of the network
    images: UInt8[Array, "device batch height width"]
    labels: Int[Array, "device batch"]
    coin: Float[Array, "device"]  # uniform on [0, 1)
    rates: Rates


class Info(NamedTuple):
    """Diagnostics of iteration k. Those that a run does not record cost nothing."""

    fired: Bool[Array, "device"]  # v_i(k)
    used_links: Bool[Array, "row slot"]  # v_ij(k)
    deviation: Float[Array, "device"]  # e_i(k); not finite where a model is not
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
    """The state before the first iteration: Ŵ(0) = W(0), and no link of A(0) is new."""
    devices = len(weights)
    still, idle = jnp.zeros(devices, weights.dtype), jnp.zeros(devices, jnp.int32)
    links = network.links if network.previous is None else None
    state = State(weights, weights, still, links, idle, ())
    begin = jnp.int32(0)
    now = situation(rules, run, state, begin, coin, rates_at(rules, run, begin).decay)
    memories = (
        first_memory(policy, now, parameters)
        for policy, parameters in zip(rules.policies, run.policies, strict=True)
    )
    return state._replace(memories=tuple(memories))


def step(rules: Rules, run: RunValues, state: State, inputs: Inputs) -> tuple[State, Info]:
    """Advance all devices by one iteration."""
    weights, last_broadcast = state.weights, state.last_broadcast
    adjacency, neighbors = inputs.network.links, inputs.network.neighbors

    # Event 2: devices that have moved far enough from their last broadcast fire.
    now = situation(rules, run, state, inputs.iteration, inputs.coin, inputs.rates.decay)
    choice = _decide(rules.policies, run, now, state.memories)

    # Event 1: a new link is used even if neither end fires.
    before = state.adjacency if inputs.network.previous is None else inputs.network.previous
    assert before is not None
    known = jnp.where(choice.uses_new_links, before, adjacency)
    links = used_links(adjacency, known, choice.fired, neighbors) & ~choice.coordinated

    # Event 3: average over the links in use, or over all devices if there is a coordinator.
    link_weights, coordinated = inputs.link_weights, choice.coordinated
    mixed = average(weights, link_weights, links, coordinated, neighbors, rules.rows)

    # Event 4: gradient step, with the gradient at the models before averaging.
    loss, gradient = loss_and_gradient(rules.model, weights, inputs.images, inputs.labels)
    gradient = jnp.where(for_each(inputs.network.training, gradient), gradient, 0)
    new_weights = mixed - inputs.rates.learning_rate * gradient
    new_broadcast = jnp.where(for_each(choice.fired, weights), weights, last_broadcast)
    new = State(
        weights=new_weights,
        last_broadcast=new_broadcast,
        # Computed here and not in the next iteration, because both are in use here anyway.
        distance=distance(new_weights, new_broadcast, rules.norm_order),
        adjacency=None if state.adjacency is None else adjacency,
        broadcasts=state.broadcasts + choice.fired,
        memories=choice.memories,
    )
    size = rules.model.size
    time = jnp.where(
        choice.coordinated,
        upload_time(run.bandwidth, size),
        transmission_time(links, adjacency, run.bandwidth, size, neighbors),
    )
    by_nobody = ~at_either_end(choice.fired, neighbors)
    return new, Info(
        fired=choice.fired,
        used_links=links,
        deviation=now.deviation,
        transmission_time=time,
        new_links=links & by_nobody,
        new_link_time=transmission_time(links & by_nobody, adjacency, run.bandwidth, size, neighbors),
        gradient_norm=jnp.sqrt(jnp.sum(gradient**2, axis=parameters_of(gradient))),
        largest_gradient=jnp.max(jnp.abs(gradient), axis=parameters_of(gradient)),
        train_loss=jnp.mean(loss),
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
