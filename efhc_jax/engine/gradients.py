"""Losses and gradients of all devices: at once, or on a CPU one after the other where that is faster.

A CPU also uses the form of a model that is meant for it, `Model.logits_on_cpu`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Jaxpr, jaxprs_in_params
from jaxtyping import Array, Float, Int, UInt8

from efhc_jax.models.base import Logits, Model, normalise

# Intermediate numbers of scores above which devices take turns: of all devices, which do not fit a CPU's
# cache, and of one device, because a turn takes some microseconds of its own.
_NUMBERS_OF_ALL, _NUMBERS_OF_ONE = 8_000_000, 5_000

_Gradient = Callable[[Array, Array, Array], tuple[Array, Array]]


def loss_and_gradient(
    model: Model,
    weights: Float[Array, "device *parameters"],
    images: UInt8[Array, "device batch height width"],
    labels: Int[Array, "device batch"],
) -> tuple[Float[Array, "device"], Float[Array, "device *parameters"]]:
    """Each device's loss on its own mini-batch, and its gradient: the rows of G(k)."""
    at_once = jax.vmap(_gradient(model, model.logits))
    in_turn = takes_turns(model, weights, images)
    if not in_turn and model.logits_on_cpu is None:
        return at_once(weights, images, labels)
    one = _gradient(model, model.logits_on_cpu or model.logits)
    on_cpu = functools.partial(_one_by_one, one) if in_turn else jax.vmap(one)
    return jax.lax.platform_dependent(weights, images, labels, cpu=on_cpu, default=at_once)


def _gradient(model: Model, logits: Logits) -> _Gradient:
    """The loss and gradient of one device."""

    def objective(row: Array, images: Array, labels: Array) -> Array:
        return jnp.mean(model.loss(logits(row, normalise(images)), labels))

    return jax.value_and_grad(objective)


def _one_by_one(gradient: _Gradient, *arguments: Array) -> tuple[Array, Array]:
    """Losses and gradients of one device after the other."""

    def of_one(device: tuple[tuple[Array, ...], Array]) -> tuple[Array, Array]:
        each, one = device
        loss, slope = gradient(*each)
        return loss, slope * one

    # A factor that the compiler does not know: without it, XLA computes parts of the gradient again for
    # each number that it stores, and a small CNN takes 40 times as long.
    ones = jax.lax.optimization_barrier(jnp.ones(len(arguments[0]), arguments[0].dtype))
    return jax.lax.map(of_one, (arguments, ones))


def takes_turns(
    model: Model,
    weights: Float[Array, "device *parameters"],
    images: UInt8[Array, "device batch height width"],
) -> bool:
    """Whether a CPU computes the gradient of one device after the other.

    It pays if the intermediate arrays of all devices do not fit the cache, but those of one may.
    Gradients of single samples are computed at once, as products of vectors for all devices.
    """
    _, batch, *shape = images.shape
    if len(weights) == 1 or batch == 1:
        return False
    row = jax.ShapeDtypeStruct(weights.shape[1:], weights.dtype)
    normalised = jax.ShapeDtypeStruct((batch, *shape), jnp.result_type(float))
    traced = jax.make_jaxpr(model.logits)(row, normalised)
    own = _numbers(traced.jaxpr)
    return own > _NUMBERS_OF_ONE and own * len(weights) > _NUMBERS_OF_ALL


def _numbers(traced: Jaxpr) -> int:
    """Number of entries of all arrays that a traced function computes."""
    arrays: list[Any] = [v.aval for equation in traced.eqns for v in equation.outvars]
    within = [body for equation in traced.eqns for body in jaxprs_in_params(equation.params)]
    return sum(math.prod(array.shape) for array in arrays) + sum(map(_numbers, within))
