"""Adam: means of gradients and of their squares, corrected for their start at 0."""

from __future__ import annotations

from dataclasses import dataclass

import optax

from efhc_jax.members import parameter
from efhc_jax.optimizers.base import Optimizer
from efhc_jax.optimizers.regularization import Regularization, regularized


@dataclass(frozen=True)
class Adam(Regularization):
    """Parameters of the optimizer `adam`."""

    b1: float = parameter(
        0.9, "Part of the mean of gradients that is kept.", low=0, high=1, below_high=True
    )
    b2: float = parameter(
        0.999, "Part of the mean of squared gradients that is kept.", low=0, high=1, below_high=True
    )
    eps: float = parameter(
        1e-8, "Number added to the root of the mean of squares.", low=0, above_low=True
    )


def make(parameters: Adam) -> optax.GradientTransformation:
    """Means m ← b₁·m + (1 − b₁)·g and n ← b₂·n + (1 − b₂)·g², and from them the direction u.

    After t steps, u = m̂ / (√n̂ + ε) with m̂ = m / (1 − b₁ᵗ) and n̂ = n / (1 − b₂ᵗ).
    """
    moments = optax.scale_by_adam(parameters.b1, parameters.b2, parameters.eps)
    return optax.chain(regularized(parameters), moments)


OPTIMIZER = Optimizer(make, Adam)
