"""EXTRA: an exact first-order algorithm for a fixed network.

Shi et al., 2015, arXiv 1404.6264. Its theory needs a fixed P and a constant step size.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from efhc_jax.methods.base import Method, Turn, Updated
from efhc_jax.methods.d2 import Before, init
from efhc_jax.methods.gradients import latest


def update(turn: Turn, parameters: Any, before: Before) -> Updated:
    """W(k+1) = W(k) + P·W(k) − ½(I + P)·W(k−1) − U(k) + U(k−1), U = α·G; first P·W(0) − U(0).

    Devices send W(k) − ½·W(k−1), which is mixed once.
    """
    gradient = latest(turn, before.gradient)
    step = turn.learning_rate * gradient
    first = turn.iteration == 0
    sent = turn.hold(turn.weights - jnp.where(first, 0, before.weights / 2))
    kept = jnp.where(first, 0, sent)
    weights = turn.mix(sent) + kept - step + before.step
    return Updated(weights, Before(turn.weights, gradient, turn.learning_rate))


METHOD = Method(update, init, fixed_network=True, constant_steps=True)
