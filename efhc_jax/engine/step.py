"""One iteration of EF-HC in matrix form, in the order of Algorithm 1 of the paper.

W(k+1) = P(k)·W(k) − α(k)·G(k)
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Int, UInt8

from efhc_jax.engine.gradients import loss_and_gradient
from efhc_jax.engine.mixing import average, for_each
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
    deviation: Float[Array, "device"]  # e(k), the distance of W(k) from Ŵ(k)
    adjacency: Bool[Array, "row slot"]  # A(k−1)
    broadcasts: Int[Array, "device"]  # number of broadcasts so far
    memories: tuple[Any, ...]  # of the policies


class Inputs(NamedTuple):
    """Inputs of iteration k."""

    iteration: Int[Array, ""]  # k
    network: Snapshot
    images: UInt8[Array, "device batch height width"]
    labels: Int[Array, "device batch"]
    coin: Float[Array, "device"]  # uniform on [0, 1)


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


def start(
    rules: Rules,
    run: RunValues,
    weights: Float[Array, "device *parameters"],
    adjacency: Bool[Array, "row slot"],
    coin: Float[Array, "device"],
) -> State:
    """The state before the first iteration: Ŵ(0) = W(0), and no link of A(0) is new."""
    devices = len(weights)
    still, idle = jnp.zeros(devices, weights.dtype), jnp.zeros(devices, jnp.int32)
    state = State(weights, weights, still, adjacency, idle, ())
    now = situation(rules, run, state, jnp.int32(0), coin)
    memories = (
        first_memory(policy, now, parameters)
        for policy, parameters in zip(rules.policies, run.policies, strict=True)
    )
    return state._replace(memories=tuple(memories))


def step(rules: Rules, run: RunValues, state: State, inputs: Inputs) -> tuple[State, Info]:
    """Advance all devices by one iteration."""
    weights, last_broadcast = state.weights, state.last_broadcast
    adjacency, neighbors = inputs.network.links, inputs.network.neighbors
    rate = value_at(rules.learning_rate, run.learning_rate, inputs.iteration)

    # Event 2: devices that have moved far enough from their last broadcast fire.
    now = situation(rules, run, state, inputs.iteration, inputs.coin)
    choice = _decide(rules.policies, run, now, state.memories)

    # Event 1: a new link is used even if neither end fires.
    before = state.adjacency if inputs.network.previous is None else inputs.network.previous
    known = jnp.where(choice.uses_new_links, before, adjacency)
    links = used_links(adjacency, known, choice.fired, neighbors) & ~choice.coordinated

    # Event 3: average over the links in use, or over all devices if there is a coordinator.
    mixed = average(weights, adjacency, links, choice.coordinated, neighbors, rules.rows)

    # Event 4: gradient step, with the gradient at the models before averaging.
    loss, gradient = loss_and_gradient(rules.model, weights, inputs.images, inputs.labels)
    gradient = jnp.where(for_each(inputs.network.training, gradient), gradient, 0)
    new_weights = mixed - rate * gradient
    new_broadcast = jnp.where(for_each(choice.fired, weights), weights, last_broadcast)
    new = State(
        weights=new_weights,
        last_broadcast=new_broadcast,
        # Computed here and not in the next iteration, because both are in use here anyway.
        deviation=normalised_distance(new_weights, new_broadcast, rules.norm_order),
        adjacency=adjacency,
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
        deviation=state.deviation,
        transmission_time=time,
        new_links=links & by_nobody,
        new_link_time=transmission_time(links & by_nobody, adjacency, run.bandwidth, size, neighbors),
        gradient_norm=jnp.sqrt(jnp.sum(gradient**2, axis=parameters_of(gradient))),
        largest_gradient=jnp.max(jnp.abs(gradient), axis=parameters_of(gradient)),
        train_loss=jnp.mean(loss),
    )


def normalised_distance(
    weights: Float[Array, "device *parameters"],
    reference: Float[Array, "device *parameters"],
    order: float,
) -> Float[Array, "device"]:
    """n^(-1/q)·‖w_i − ŵ_i‖_q of each row: the q-mean of the absolute differences."""
    difference = jnp.abs(weights - reference)
    axes = parameters_of(weights)
    if order == 1:
        return jnp.mean(difference, axis=axes)
    if order == 2:
        return jnp.sqrt(jnp.mean(difference**2, axis=axes))
    largest = jnp.max(difference, axis=axes)
    if math.isinf(order):
        return largest
    # Powers of small numbers vanish in 32 bits, so they are taken relative to the largest entry.
    scale = jnp.where(largest > 0, largest, 1)
    relative = difference / for_each(scale, weights)
    return scale * jnp.mean(relative**order, axis=axes) ** (1 / order)


def parameters_of(weights: Float[Array, "device *parameters"]) -> tuple[int, ...]:
    """The axes of a device's parameters."""
    return tuple(range(1, weights.ndim))


def situation(
    rules: Rules,
    run: RunValues,
    state: State,
    iteration: Int[Array, ""],
    coin: Float[Array, "device"],
) -> Situation:
    """The quantities that the policies of a run can use."""
    if rules.threshold is None or run.threshold is None:
        decay = value_at(rules.learning_rate, run.learning_rate, iteration)  # γ = α
    else:
        decay = value_at(rules.threshold, run.threshold, iteration)
    return Situation(
        iteration=iteration,
        deviation=state.deviation,
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
    fired = jnp.stack([fired for fired, _ in decided])
    new_links = jnp.array([policy.uses_new_links for policy in policies])
    coordinated = jnp.array([policy.coordinated for policy in policies])
    following = tuple(memory for _, memory in decided)
    chosen = run.policy
    return _Choice(fired[chosen], new_links[chosen], coordinated[chosen], following)
