"""Local training of all devices in one iteration: one gradient step, or several, by an optimizer."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt8

from efhc_jax.engine.gradients import loss_and_gradient
from efhc_jax.models.base import Model
from efhc_jax.models.rows import for_each
from efhc_jax.optimizers.base import Optimizer, direction


class Training(NamedTuple):
    """Static settings of local training."""

    model: Model
    optimizer: Optimizer | None = None  # None for plain gradient descent
    local_steps: int = 1  # τ


class Trained(NamedTuple):
    """The outcome of local training."""

    loss: Float[Array, "device"]  # of the first mini-batch, at W(k)
    gradient: Float[Array, "device *parameters"]  # G(k), its gradient
    added: Callable[[Float[Array, "device *parameters"]], Float[Array, "device *parameters"]]  # X + Δ
    memory: Any  # of the optimizer


def train(
    training: Training,
    weights: Float[Array, "device *parameters"],
    images: UInt8[Array, "*steps device batch height width"],
    labels: Int[Array, "*steps device batch"],
    trains: Bool[Array, "device"],
    learning_rate: Float[Array, ""],
    parameters: Any,
    memory: Any,
) -> Trained:
    """Local training from W(k). Δ is its change of the models; devices that do not train have none.

    Args:
        training: the settings.
        weights: W(k).
        images: a mini-batch per device; with several steps, one for each along a new first axis.
        labels: their labels.
        trains: the devices that train.
        learning_rate: α(k), of all steps.
        parameters: of the optimizer.
        memory: of the optimizer.
    """
    step = functools.partial(_step, training, trains, parameters)
    if training.local_steps == 1:
        loss, gradient, along, memory = step(weights, images, labels, memory)
        return Trained(loss, gradient, lambda x: x - learning_rate * along, memory)
    loss, gradient, along, memory = step(weights, images[0], labels[0], memory)

    def following(carry: Any, batch: tuple[Array, Array]) -> tuple[Any, None]:
        moved, memory = carry
        _, _, along, memory = step(moved, *batch, memory)
        return (moved - learning_rate * along, memory), None

    first = weights - learning_rate * along
    (moved, memory), _ = jax.lax.scan(following, (first, memory), (images[1:], labels[1:]))
    return Trained(loss, gradient, lambda x: x + (moved - weights), memory)


def _step(
    training: Training,
    trains: Array,
    parameters: Any,
    weights: Array,
    images: Array,
    labels: Array,
    memory: Any,
) -> tuple[Array, Array, Array, Any]:
    """Losses and gradients, the direction of the step, and the memory of the optimizer."""
    loss, gradient = loss_and_gradient(training.model, weights, images, labels)
    gradient = jnp.where(for_each(trains, gradient), gradient, 0)
    if training.optimizer is None:
        return loss, gradient, gradient, memory
    along, memory = direction(training.optimizer, parameters, memory, gradient, weights, trains)
    return loss, gradient, along, memory
