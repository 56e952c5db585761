"""How models are averaged: links in use, Metropolis weights, and the transition matrix P(k)."""

from __future__ import annotations

import functools
import operator

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

_WRITTEN_OUT = 16  # the most devices whose product with P is written out


def used_links(
    adjacency: Bool[Array, "device device"],
    previous: Bool[Array, "device device"],
    fired: Bool[Array, "device"],
) -> Bool[Array, "device device"]:
    """Links that carry parameters now: an end fired, or the link is new (Events 1 and 2).

    v_ij(k) = A_ij(k) ∧ (v_i(k) ∨ v_j(k) ∨ ¬A_ij(k−1))
    """
    appeared = adjacency & ~previous
    return adjacency & (fired[:, None] | fired[None, :] | appeared)


def metropolis_weights(adjacency: Bool[Array, "device device"]) -> Float[Array, "device device"]:
    """Weight of each physical link, from the degrees of its ends: 0 where there is no link.

    β_ij = min(1 / (1 + d_i), 1 / (1 + d_j))

    Example:
        >>> path = jnp.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=bool)
        >>> metropolis_weights(path)[0].tolist()
        [0.0, 0.3333333432674408, 0.0]
    """
    adjacency = jnp.asarray(adjacency, bool)
    own = 1 / (1 + adjacency.sum(1))
    return jnp.where(adjacency, jnp.minimum(own[:, None], own[None, :]), 0)


def transition_matrix(
    adjacency: Bool[Array, "device device"], used_links: Bool[Array, "device device"]
) -> Float[Array, "device device"]:
    """P(k): Metropolis weights on the links in use, and the rest of each row on its diagonal.

    p_ij = β_ij·v_ij for i ≠ j, p_ii = 1 − Σ_{j≠i} p_ij: symmetric and doubly stochastic.
    """
    weights = jnp.where(used_links, metropolis_weights(adjacency), 0)
    return weights + jnp.diag(1 - weights.sum(1))


def mix(
    transition: Float[Array, "device device"], weights: Float[Array, "device parameter"]
) -> Float[Array, "device parameter"]:
    """P·W.

    For few devices the product is written out as sums that the compiler fuses with what comes next,
    which is faster than a matrix product. Otherwise it is taken in full precision, because
    accelerators round products by default.
    """
    devices = len(weights)
    if devices <= _WRITTEN_OUT:
        return functools.reduce(
            operator.add, (transition[:, j, None] * weights[j] for j in range(devices))
        )
    return jnp.matmul(transition, weights, precision=jax.lax.Precision.HIGHEST)
