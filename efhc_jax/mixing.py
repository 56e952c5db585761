"""How models are averaged: links in use, Metropolis weights, and the transition matrix P(k).

Links are stored in slots, as `network.py` says; with `neighbors` left out they are plain matrices.
"""

from __future__ import annotations

import functools
import operator

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Shaped

from efhc_jax.network import behind_slots

_WRITTEN_OUT = 16  # the most devices whose product with P is written out
_SLOTS_TOGETHER = 8  # slots of neighbour lists that are summed in one pass

Neighbors = Int[Array, "device slot"] | None


def used_links(
    adjacency: Bool[Array, "device slot"],
    previous: Bool[Array, "device slot"],
    fired: Bool[Array, "device"],
    neighbors: Neighbors = None,
) -> Bool[Array, "device slot"]:
    """Links that carry parameters now: an end fired, or the link is new (Events 1 and 2).

    v_ij(k) = A_ij(k) ∧ (v_i(k) ∨ v_j(k) ∨ ¬A_ij(k−1))
    """
    appeared = adjacency & ~previous
    return adjacency & (fired[:, None] | behind_slots(fired, neighbors) | appeared)


def metropolis_weights(
    adjacency: Bool[Array, "device slot"], neighbors: Neighbors = None
) -> Float[Array, "device slot"]:
    """Weight of each physical link, from the degrees of its ends: 0 where there is no link.

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
    adjacency: Bool[Array, "device device"], used_links: Bool[Array, "device device"]
) -> Float[Array, "device device"]:
    """P(k): Metropolis weights on the links in use, and the rest of each row on its diagonal.

    p_ij = β_ij·v_ij for i ≠ j, p_ii = 1 − Σ_{j≠i} p_ij: symmetric and doubly stochastic.
    """
    weights = jnp.where(used_links, metropolis_weights(adjacency), 0)
    return weights + jnp.diag(1 - weights.sum(1))


def mix(
    transition: Float[Array, "device device"], weights: Float[Array, "device *parameters"]
) -> Float[Array, "device *parameters"]:
    """P·W.

    For few devices the product is written out as sums that the compiler fuses with what comes next,
    which is faster than a matrix product. Otherwise it is taken in full precision, because
    accelerators round products by default.
    """
    devices = len(weights)
    if devices <= _WRITTEN_OUT:
        return functools.reduce(
            operator.add, (for_each(transition[:, j], weights) * weights[j] for j in range(devices))
        )
    flat = weights.reshape(devices, -1)
    mixed = jnp.matmul(transition, flat, precision=jax.lax.Precision.HIGHEST)
    return mixed.reshape(weights.shape)


def for_each(
    values: Shaped[Array, "device"], weights: Float[Array, "device *parameters"]
) -> Shaped[Array, "device *ones"]:
    """One value a device, in a shape that combines with all parameters of the device."""
    return values.reshape(-1, *(1 for _ in weights.shape[1:]))


def mix_neighbors(
    link_weights: Float[Array, "device slot"],
    weights: Float[Array, "device *parameters"],
    neighbors: Int[Array, "device slot"],
) -> Float[Array, "device *parameters"]:
    """P·W over lists of neighbours: (1 − Σ_s p_is)·w_i + Σ_s p_is·w_j, with j the device behind slot s.

    A few slots are summed at a time, so that no array is larger than W.
    """
    mixed = for_each(1 - link_weights.sum(1), weights) * weights
    for first in range(0, neighbors.shape[1], _SLOTS_TOGETHER):
        some = range(first, min(first + _SLOTS_TOGETHER, neighbors.shape[1]))
        mixed += functools.reduce(
            operator.add,
            (for_each(link_weights[:, s], weights) * weights[neighbors[:, s]] for s in some),
        )
    return mixed


def average(
    weights: Float[Array, "device *parameters"],
    adjacency: Bool[Array, "device slot"],
    used: Bool[Array, "device slot"],
    coordinated: Bool[Array, ""],
    neighbors: Neighbors = None,
) -> Float[Array, "device *parameters"]:
    """P(k)·W: over the links in use, or over everybody where there is a coordinator (Event 3)."""
    if neighbors is None:
        transition = transition_matrix(adjacency, used)
        return mix(jnp.where(coordinated, 1 / len(weights), transition), weights)
    link_weights = jnp.where(used, metropolis_weights(adjacency, neighbors), 0)
    mixed = mix_neighbors(link_weights, weights, neighbors)
    return jnp.where(coordinated, jnp.mean(weights, axis=0), mixed)
