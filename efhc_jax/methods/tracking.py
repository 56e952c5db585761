"""Gradient tracking: devices follow an estimate of the mean gradient, which they exchange as well.

The form ATC-DIGing, also known as Aug-DGM: Xu et al., 2015; Nedić et al., 2017, arXiv 1607.03218.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp

from efhc_jax.methods.base import Method, Turn, Updated
from efhc_jax.methods.gradients import latest

if TYPE_CHECKING:
    from jaxtyping import Array, Float


class Tracked(NamedTuple):
    """The memory of the method."""

    direction: Float[Array, "device *parameters"]  # Y(k−1)
    gradient: Float[Array, "device *parameters"]  # G(k−1)


def init(weights: Float[Array, "device *parameters"], parameters: Any) -> Tracked:
    """Nothing is known before the first gradient."""
    return Tracked(jnp.zeros_like(weights), jnp.zeros_like(weights))


def update(turn: Turn, parameters: Any, before: Tracked) -> Updated:
    """W(k+1) = P(k)·(W(k) − α(k)·Y(k)), Y(k) = P(k)·(Y(k−1) + G(k) − G(k−1)), and Y(0) = G(0).

    The mean of Y stays the mean of the gradients. A device that does not train keeps its last gradient.
    """
    gradient = latest(turn, before.gradient)
    changed = turn.hold(before.direction + gradient - before.gradient)
    direction = jnp.where(turn.iteration == 0, changed, turn.mix(changed))
    weights = turn.mix(turn.weights - turn.learning_rate * direction)
    return Updated(weights, Tracked(direction, gradient))


METHOD = Method(update, init, arrays=2)
