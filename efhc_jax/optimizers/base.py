"""The type of all optimizers, and the directions of all devices.

A local step is w ← w − α(k)·u: the optimizer gives the direction u, and the step size α(k) is that of
the run. Each device has its own state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float

Memory = Any  # a tree of arrays, with a leading axis of devices


class Optimizer(NamedTuple):
    """A rule for the direction of a device's local step.

    Attributes:
        make: function from the parameters to an optax transformation without learning rate and sign,
            such as `optax.scale_by_adam()`. It is applied to the gradient and the model of one device.
            It is traced into the compiled program, so the parameters are arrays.
        parameters: frozen dataclass of its own parameters, or None.
    """

    make: Callable[[Any], optax.GradientTransformation]
    parameters: type | None = None


def start(optimizer: Optimizer, parameters: Any, weights: Float[Array, "device *parameters"]) -> Memory:
    """The states of all devices before the first step."""
    return jax.vmap(optimizer.make(parameters).init)(weights)


def direction(
    optimizer: Optimizer,
    parameters: Any,
    state: Memory,
    gradient: Float[Array, "device *parameters"],
    weights: Float[Array, "device *parameters"],
    training: Bool[Array, "device"],
) -> tuple[Float[Array, "device *parameters"], Memory]:
    """u_i for the gradients of all devices, and their new states.

    Args:
        optimizer: the optimizer.
        parameters: its parameters.
        state: the states before this step.
        gradient: g_i at the models.
        weights: the models w_i.
        training: the devices that take this step. The others have direction 0 and keep their state.
    """
    transformation = optimizer.make(parameters)

    def of_device(gradient: Array, state: Memory, weights: Array, trains: Array) -> tuple[Array, Memory]:
        found, following = transformation.update(gradient, state, weights)
        kept = jax.tree.map(lambda new, old: jnp.where(trains, new, old), following, state)
        return jnp.where(trains, found, 0), kept

    return jax.vmap(of_device)(gradient, state, weights, training)
