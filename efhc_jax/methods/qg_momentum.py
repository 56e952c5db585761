"""Quasi-global momentum: momentum along the changes of the averaged models, not of the local gradients.

QG-DSGDm: Lin et al., 2021, arXiv 2102.04761.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax.numpy as jnp

from efhc_jax.members import parameter
from efhc_jax.methods.base import Method, Turn, Updated

if TYPE_CHECKING:
    from jaxtyping import Array, Float


@dataclass(frozen=True)
class QGMomentum:
    """Parameters of the method `qg_momentum`."""

    beta: float = parameter(0.9, "Weight β of the momentum in a step.", low=0, high=1, below_high=True)
    mu: float = parameter(
        0.1, "Weight μ of the newest change in the momentum.", low=0, high=1, above_low=True
    )


def init(
    weights: Float[Array, "device *parameters"], parameters: QGMomentum
) -> Float[Array, "device *parameters"]:
    """M(0) = 0."""
    return jnp.zeros_like(weights)


def update(turn: Turn, parameters: QGMomentum, momentum: Float[Array, "device *parameters"]) -> Updated:
    """W(k+1) = P(k)·(W(k) − α·(β·M(k) + G(k))), M(k+1) = (1 − μ)·M(k) + μ·(W(k) − W(k+1))/α."""
    rate = turn.learning_rate
    weights = turn.mix(turn.weights - rate * (parameters.beta * momentum + turn.gradient))
    change = (turn.weights - weights) / jnp.where(rate > 0, rate, jnp.inf)
    return Updated(weights, (1 - parameters.mu) * momentum + parameters.mu * change)


METHOD = Method(update, init, parameters=QGMomentum, steadied_by=("beta",))
