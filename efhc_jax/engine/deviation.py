"""Distance of each model from its last broadcast: e_i = n^(-1/q)·‖w_i − ŵ_i‖_q.

It is computed in two parts. The sum over parameters belongs to the update, which has W and Ŵ at hand;
what is left for each device belongs to the decision that compares it, so that it needs no kernel of its
own.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from efhc_jax.models.rows import for_each, parameters_of


def normalised_distance(
    weights: Float[Array, "device *parameters"],
    reference: Float[Array, "device *parameters"],
    order: float,
) -> Float[Array, "device"]:
    """n^(-1/q)·‖w_i − ŵ_i‖_q of each row: the q-mean of the absolute differences."""
    size = math.prod(weights.shape[1:])
    return from_distance(distance(weights, reference, order), size, order)


def distance(
    weights: Float[Array, "device *parameters"],
    reference: Float[Array, "device *parameters"],
    order: float,
) -> Float[Array, "device"]:
    """The part over parameters: Σ|w − ŵ|^q for q of 1 and 2, otherwise the q-mean itself."""
    difference = jnp.abs(weights - reference)
    axes = parameters_of(weights)
    if order in (1, 2):
        return jnp.sum(difference**order, axis=axes)
    largest = jnp.max(difference, axis=axes)
    if math.isinf(order):
        return largest
    # Powers of small numbers vanish in 32 bits, so they are taken relative to the largest entry.
    scale = jnp.where(largest > 0, largest, 1)
    relative = difference / for_each(scale, weights)
    return scale * jnp.mean(relative**order, axis=axes) ** (1 / order)


def from_distance(
    distance: Float[Array, "device"], parameters: int, order: float
) -> Float[Array, "device"]:
    """The part that is left: the q-mean e_i, from the distance of models with so many parameters."""
    if order == 1:
        return distance / parameters
    return jnp.sqrt(distance / parameters) if order == 2 else distance
