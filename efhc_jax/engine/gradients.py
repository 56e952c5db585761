"""Losses and gradients of all devices: at once, or on a CPU one after the other where that is faster."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax.extend.core import Jaxpr, jaxprs_in_params
from jaxtyping import Array, Float, Int, UInt8

from efhc_jax.models.base import Model, normalise

_CACHE_NUMBERS = 700_000  # intermediate numbers of a device's scores, above which devices take turns


def loss_and_gradient(
    model: Model,
    weights: Float[Array, "device *parameters"],
    images: UInt8[Array, "device batch height width"],
    labels: Int[Array, "device batch"],
) -> tuple[Float[Array, "device"], Float[Array, "device *parameters"]]:
    """Each device's loss on its own mini-batch, and its gradient: the rows of G(k)."""

    def objective(row: Array, images: Array, labels: Array) -> Array:
        return jnp.mean(model.loss(model.logits(row, normalise(images)), labels))

    gradient = jax.value_and_grad(objective)
    at_once = jax.vmap(gradient)
    if not takes_turns(model, weights, images):
        return at_once(weights, images, labels)

    def in_turn(*arguments: Array) -> tuple[Array, Array]:
        return jax.lax.map(lambda each: gradient(*each), arguments)

    return jax.lax.platform_dependent(weights, images, labels, cpu=in_turn, default=at_once)


def takes_turns(
    model: Model,
    weights: Float[Array, "device *parameters"],
    images: UInt8[Array, "device batch height width"],
) -> bool:
    """Whether a CPU computes the gradient of one device after the other.

    It pays if the intermediate arrays of one device are large: those of all devices then do not fit the
    cache. A batch of one sample is small for every model.
    """
    _, batch, *shape = images.shape
    if len(weights) == 1 or batch == 1:
        return False
    row = jax.ShapeDtypeStruct(weights.shape[1:], weights.dtype)
    normalised = jax.ShapeDtypeStruct((batch, *shape), jnp.result_type(float))
    traced = jax.make_jaxpr(model.logits)(row, normalised)
    return _numbers(traced.jaxpr) > _CACHE_NUMBERS


def _numbers(traced: Jaxpr) -> int:
    """Number of entries of all arrays that a traced function computes."""
    own = sum(math.prod(v.aval.shape) for equation in traced.eqns for v in equation.outvars)
    return own + sum(
        _numbers(body) for equation in traced.eqns for body in jaxprs_in_params(equation.params)
    )
