"""Stochastic gradient descent: the gradient itself."""

from __future__ import annotations

from dataclasses import dataclass

import optax

from efhc_jax.optimizers.base import Optimizer
from efhc_jax.optimizers.regularization import Regularization, regularized


@dataclass(frozen=True)
class Sgd(Regularization):
    """Parameters of the optimizer `sgd`."""


def make(parameters: Sgd) -> optax.GradientTransformation:
    """The direction u = g."""
    return regularized(parameters)


OPTIMIZER = Optimizer(make, Sgd)
