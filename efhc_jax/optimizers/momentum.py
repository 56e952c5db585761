"""Heavy-ball momentum."""

from __future__ import annotations

from dataclasses import dataclass

import optax

from efhc_jax.members import parameter
from efhc_jax.optimizers.base import Optimizer
from efhc_jax.optimizers.regularization import Regularization, regularized


@dataclass(frozen=True)
class Momentum(Regularization):
    """Parameters of the optimizer `momentum`."""

    momentum: float = parameter(
        0.9, "Part β of the last direction that is kept.", low=0, high=1, below_high=True
    )


def make(parameters: Momentum) -> optax.GradientTransformation:
    """Directions u = v, with v ← β·v + g."""
    return optax.chain(regularized(parameters), optax.trace(parameters.momentum))


OPTIMIZER = Optimizer(make, Momentum)
