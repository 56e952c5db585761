"""Nesterov's momentum: the direction of heavy-ball momentum one step ahead, for the same gradient."""

from __future__ import annotations

from dataclasses import dataclass

import optax

from efhc_jax.members import parameter
from efhc_jax.optimizers.base import Optimizer
from efhc_jax.optimizers.regularization import Regularization, regularized


@dataclass(frozen=True)
class Nesterov(Regularization):
    """Parameters of the optimizer `nesterov`."""

    momentum: float = parameter(
        0.9, "Part β of the last direction that is kept.", low=0, high=1, below_high=True
    )


def make(parameters: Nesterov) -> optax.GradientTransformation:
    """Directions u = β·v + g, with v ← β·v + g."""
    return optax.chain(regularized(parameters), optax.trace(parameters.momentum, nesterov=True))


OPTIMIZER = Optimizer(make, Nesterov)
