"""Averaging of models: Metropolis weights, and the transition matrix P(k).

Links are stored in slots (see `network/slots.py`); without `neighbors` they are plain matrices.
"""

from __future__ import annotations

import functools
import operator

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Shaped

from efhc_jax.engine.deviation import for_each
from efhc_jax.engine.sharding import on_own_rows
from efhc_jax.network.slots import behind_slots

_WRITTEN_OUT = 16  # devices up to which a CPU computes the product with P as a sum
_FUSED = 31  # devices up to which accelerators compute it as a reduction; XLA fuses no longer ones
_BYTES_TOGETHER = 4 * 2**20  # of models that are mixed at a time over neighbour lists

Neighbors = Int[Array, "device slot"] | None


def metropolis_weights(
    adjacency: Shaped[ArrayLike, "device slot"] | list[list[int]], neighbors: Neighbors = None
) -> Float[Array, "device slot"]:
    """Metropolis weights of each physical link, from the degrees of its ends; 0 without a link.

    β_ij = min(1 / (1 + d_i), 1 / (1 + d_j))

    Example:
        >>> path = jnp.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=bool)
        >>> metropolis_weights(path)[0].tolist()
        [0.0, 0.3333333432674408, 0.0]
    """
    adjacency = jnp.asarray(adjacency, bool)
    own = 1 / (1 + adjacency.sum(1))
    return jnp.where(adjacency, jnp.minimum(own[:, None], behind_slots(own, neighbors)), 0)


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


def mix_neighbors(
    link_weights: Float[Array, "device slot"],
    weights: Float[Array, "device *parameters"],
    neighbors: Int[Array, "device slot"],
    everyone: Float[Array, "other *parameters"] | None = None,
) -> Float[Array, "device *parameters"]:
    """P·W over neighbour lists: (1 − Σ_s p_is)·w_i + Σ_s p_is·w_j, with j the device in slot s.

    A few devices are mixed at a time, so that the gathered models stay in the cache.

    Args:
        link_weights: p_is.
        weights: the models of these devices.
        neighbors: the devices in the slots.
        everyone: the models of all devices, if `weights` has only some of them.
    """
    others = weights if everyone is None else everyone
    devices = len(weights)
    together = max(1, _BYTES_TOGETHER // (weights[0].size * weights.dtype.itemsize))
    blocks = -(-devices // together)
    block = -(-devices // blocks)

    def one(own: Array, shares: Array, behind: Array) -> Array:
        near = (shares[slot] * others[behind[slot]] for slot in range(len(behind)))
        return functools.reduce(operator.add, near, (1 - shares.sum()) * own)

    def mix_block(number: Array, mixed: Array) -> Array:
        # The last block overlaps the one before, so that W is neither cut nor joined.
        first = jnp.minimum(number * block, devices - block)
        some = (
            jax.lax.dynamic_slice_in_dim(each, first, block)
            for each in (weights, link_weights, neighbors)
        )
        return jax.lax.dynamic_update_slice_in_dim(mixed, jax.vmap(one)(*some), first, axis=0)

    if blocks == 1:
        return jax.vmap(one)(weights, link_weights, neighbors)
    return jax.lax.fori_loop(0, blocks, mix_block, jnp.empty_like(weights))


def _mix_own(link_weights: Array, weights: Array, neighbors: Array) -> Array:
    """`mix_neighbors` for the devices of one accelerator."""
    everyone = jax.lax.all_gather(weights, "rows", tiled=True)
    return mix_neighbors(link_weights, weights, neighbors, everyone)


def average(
    weights: Float[Array, "device *parameters"],
    link_weights: Float[Array, "device slot"],
    used: Bool[Array, "device slot"],
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
    mixing = mix_neighbors if rows is None else on_own_rows(rows, _mix_own)
    mixed = mixing(shares, weights, neighbors)
    return jnp.where(coordinated, jnp.mean(weights, axis=0), mixed)
