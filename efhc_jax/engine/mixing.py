"""Averaging of models: Metropolis weights, and the transition matrix P(k).

Links are stored in slots (see `network/slots.py`); without `neighbors` they are plain matrices.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Shaped

from efhc_jax.engine.sharding import on_own_rows
from efhc_jax.models.rows import for_each
from efhc_jax.network.slots import Neighbors, behind_slots, of_rows, sum_of_slots
from efhc_jax.network.split_lists import SplitLists, sums_of_further, taken

_WRITTEN_OUT = 16  # devices up to which a CPU computes the product with P as a sum
_FUSED = 31  # devices up to which accelerators compute it as a reduction; XLA fuses no longer ones


def metropolis_weights(
    adjacency: Shaped[ArrayLike, "row slot"] | list[list[int]], neighbors: Neighbors = None
) -> Float[Array, "row slot"]:
    """Metropolis weights of each physical link, from the degrees of its ends; 0 without a link.

    β_ij = min(1 / (1 + d_i), 1 / (1 + d_j))

    Example:
        >>> path = jnp.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=bool)
        >>> metropolis_weights(path)[0].tolist()
        [0.0, 0.3333333432674408, 0.0]
    """
    adjacency = jnp.asarray(adjacency, bool)
    own = 1 / (1 + sum_of_slots(adjacency, neighbors))
    least = jnp.minimum(of_rows(own, neighbors), behind_slots(own, neighbors))
    return jnp.where(adjacency, least, 0)


def transition_matrix(
    adjacency: Bool[ArrayLike, "device device"], used_links: Bool[ArrayLike, "device device"]
) -> Float[Array, "device device"]:
    """P(k): Metropolis weights on the links in use, and the rest of each row on its diagonal.

    p_ij = β_ij·v_ij for i ≠ j, p_ii = 1 − Σ_{j≠i} p_ij: symmetric and doubly stochastic.
    """
    return _with_diagonal(jnp.where(used_links, metropolis_weights(adjacency), 0))


def _with_diagonal(weights: Float[Array, "device device"]) -> Float[Array, "device device"]:
    """The rest of each row on the diagonal."""
    return weights + jnp.diag(1 - weights.sum(1))


def mix(
    transition: Float[Array, "device device"], weights: Float[Array, "device *parameters"]
) -> Float[Array, "device *parameters"]:
    """The product P·W.

    For few devices it is written in a way that the compiler fuses with the following operations, so that
    they share one pass over W: as a sum of models on a CPU, and as a reduction on accelerators, where
    each term of such a sum would be a kernel that copies a model.
    """
    if len(weights) > _FUSED:
        return _as_product(transition, weights)
    cpu = _as_sum if len(weights) <= _WRITTEN_OUT else _as_product
    return jax.lax.platform_dependent(transition, weights, cpu=cpu, default=_as_reduction)


def _as_sum(transition: Array, weights: Array) -> Array:
    """P·W as a sum of m terms."""
    terms = (for_each(transition[:, j], weights) * weights[j] for j in range(len(weights)))
    return functools.reduce(operator.add, terms)


def _as_reduction(transition: Array, weights: Array) -> Array:
    """P·W as a reduction over the second axis of all products."""
    entries = transition.reshape(*transition.shape, *(1 for _ in weights.shape[1:]))
    return jnp.sum(entries * weights, axis=1)


def _as_product(transition: Array, weights: Array) -> Array:
    """P·W as a matrix product in full precision; accelerators use a lower one by default."""
    flat = weights.reshape(len(weights), -1)
    mixed = jnp.matmul(transition, flat, precision=jax.lax.Precision.HIGHEST)
    return mixed.reshape(weights.shape)


def computed_once(
    x: Float[Array, "device *parameters"], iteration: Int[Array, ""]
) -> Float[Array, "device *parameters"]:
    """X, which a CPU computes before it is mixed.

    Otherwise it would compute every entry again for each of the m models that it is mixed into. It
    passes X through a loop that has no turns in any iteration, which the compiler cannot know.
    """

    def through_a_loop(x: Array, iteration: Array) -> Array:
        turns = (iteration < 0).astype(jnp.int32)
        return jax.lax.fori_loop(0, turns, lambda _, x: -x, x)

    return jax.lax.platform_dependent(x, iteration, cpu=through_a_loop, default=lambda x, _: x)


def mix_neighbors(
    link_weights: Float[Array, "device slot"],
    weights: Float[Array, "device *parameters"],
    neighbors: Int[Array, "device slot"],
    everyone: Float[Array, "other *parameters"] | None = None,
) -> Float[Array, "device *parameters"]:
    """P·W over neighbour lists: (1 − Σ_s p_is)·w_i + Σ_s p_is·w_j, with j the device in slot s.

    Args:
        link_weights: p_is.
        weights: the models of these devices.
        neighbors: the devices in the slots.
        everyone: the models of all devices, if `weights` has only some of them.
    """
    # Written out, because compilers do not fuse a reduction over slots with what follows.
    rest = 1 - functools.reduce(operator.add, (column for column in link_weights.T))
    near = _weighted_models(link_weights, weights if everyone is None else everyone, neighbors)
    return functools.reduce(operator.add, near, for_each(rest, weights) * weights)


def _weighted_models(link_weights: Array, weights: Array, neighbors: Array) -> Iterator[Array]:
    """p_is·w_j of all rows, slot by slot.

    Written out, so that the compiler reads the models where they are, and fuses all slots with the
    following operations into one pass that writes W once.
    """
    for slot in range(neighbors.shape[1]):
        behind = weights[neighbors[:, slot]]
        yield for_each(link_weights[:, slot], behind) * behind


def _mix_further(
    link_weights: Float[Array, "further slot"],
    weights: Float[Array, "device *parameters"],
    neighbors: Int[Array, "further slot"],
    lists: SplitLists,
) -> Float[Array, "device *parameters"]:
    """The part of P·W of further rows: Σ_s p_is·(w_j − w_i) over their slots."""
    near = functools.reduce(operator.add, _weighted_models(link_weights, weights, neighbors))
    models, shares = sums_of_further(near, lists), sums_of_further(link_weights.sum(1), lists)
    shares = taken(shares, lists.sums)
    return taken(models, lists.sums) - for_each(shares, weights) * weights


def _mix_own(link_weights: Array, weights: Array, neighbors: Array) -> Array:
    """`mix_neighbors` for the devices of one accelerator."""
    everyone = jax.lax.all_gather(weights, "rows", tiled=True)
    return mix_neighbors(link_weights, weights, neighbors, everyone)


def average(
    weights: Float[Array, "device *parameters"],
    link_weights: Float[Array, "row slot"],
    used: Bool[Array, "row slot"],
    coordinated: Bool[Array, ""],
    neighbors: Neighbors = None,
    rows: Mesh | None = None,
) -> Float[Array, "device *parameters"]:
    """P(k)·W: over the links in use, or over all devices if there is a coordinator (Event 3).

    Args:
        weights: W.
        link_weights: β_ij of all links.
        used: links that carry parameters.
        coordinated: whether there is a coordinator.
        neighbors: the devices in the slots; None for a matrix.
        rows: the accelerators that the devices are distributed over, if any.
    """
    shares = jnp.where(used, link_weights, 0)
    if neighbors is None:
        return mix(jnp.where(coordinated, 1 / len(weights), _with_diagonal(shares)), weights)
    mixed = _mix_lists(shares, weights, used, neighbors, rows)
    return jnp.where(coordinated, _mean_if(coordinated, weights), mixed)


def _mix_lists(
    link_weights: Float[Array, "row slot"],
    weights: Float[Array, "device *parameters"],
    used: Bool[Array, "row slot"],
    neighbors: Int[Array, "device slot"] | SplitLists,
    rows: Mesh | None,
) -> Float[Array, "device *parameters"]:
    """P·W over neighbour lists, split or not."""
    devices = len(weights)
    oneself = of_rows(jnp.arange(devices, dtype=jnp.int32), neighbors)
    behind = neighbors.neighbors if isinstance(neighbors, SplitLists) else neighbors
    # Links that are not in use lead to the device itself, whose model is read anyway.
    behind = jnp.where(used, behind, oneself)
    mixing = mix_neighbors if rows is None else on_own_rows(rows, _mix_own)
    mixed = mixing(link_weights[:devices], weights, behind[:devices])
    if not isinstance(neighbors, SplitLists):
        return mixed
    return mixed + _mix_further(link_weights[devices:], weights, behind[devices:], neighbors)


def _mean_if(
    wanted: Bool[Array, ""], weights: Float[Array, "device *parameters"]
) -> Float[Array, "*parameters"]:
    """The mean of all models; a CPU computes it only if some run of the batch wants it."""

    def always(wanted: Array, weights: Array) -> Array:
        return jnp.mean(weights, axis=0)

    def one_turn_or_none(wanted: Array, weights: Array) -> Array:
        # Unlike a condition, a loop is skipped in a batch, too. Its body depends on the turn, or the
        # compiler would compute the mean before the loop.
        def turn(number: Array, _: Array) -> Array:
            return jnp.mean(jnp.where(number == 0, weights, 0), axis=0)

        return jax.lax.fori_loop(0, wanted.astype(jnp.int32), turn, jnp.zeros_like(weights[0]))

    return jax.lax.platform_dependent(wanted, weights, cpu=one_turn_or_none, default=always)
