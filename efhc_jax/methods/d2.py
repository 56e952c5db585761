"""D²: a correction by the last step, so that different data do not bias the devices.

Tang et al., 2018, arXiv 1803.07068. Its theory needs a fixed P whose eigenvalues are
above −1/3, and a constant step size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp

from efhc_jax.methods.base import Method, Turn, Updated
from efhc_jax.methods.gradients import latest

if TYPE_CHECKING:
    from jaxtyping import Array, Float


class Before(NamedTuple):
    """The memory of the method."""

    weights: Float[Array, "device *parameters"]  # W(k−1)
    gradient: Float[Array, "device *parameters"]  # G(k−1)
    learning_rate: Float[Array, ""]  # α(k−1)

    @property
    def step(self) -> Float[Array, "device *parameters"]:
        """U(k−1) = α(k−1)·G(k−1)."""
        return self.learning_rate * self.gradient


def init(weights: Float[Array, "device *parameters"], parameters: Any) -> Before:
    """W(−1) = W(0) and no step, which make the first iteration one of gossip."""
    return Before(weights, jnp.zeros_like(weights), jnp.zeros((), weights.dtype))


def update(turn: Turn, parameters: Any, before: Before) -> Updated:
    """W(k+1) = P(k)·(2·W(k) − W(k−1) − U(k) + U(k−1)), U(k) = α(k)·G(k); first P(0)·(W(0) − U(0))."""
    gradient = latest(turn, before.gradient)
    step = turn.learning_rate * gradient
    weights = turn.mix(2 * turn.weights - before.weights - step + before.step)
    return Updated(weights, Before(turn.weights, gradient, turn.learning_rate))


METHOD = Method(update, init, fixed_network=True, lowest_eigenvalue=-1 / 3, constant_steps=True)
