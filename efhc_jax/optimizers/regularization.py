"""Clipping and weight decay, which all optimizers of the package apply to a gradient first."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from efhc_jax.members import parameter


@dataclass(frozen=True)
class Regularization:
    """Parameters that all optimizers of the package have."""

    weight_decay: float = parameter(0.0, "Factor λ of the model that is added to the gradient.", low=0)
    clip: float = parameter(
        math.inf,
        "Largest norm of a device's gradient; larger ones are scaled down to it, before weight decay.",
        low=0,
        above_low=True,
        infinite=True,
    )


def regularized(parameters: Regularization) -> optax.GradientTransformation:
    """Clipping, g ← g·min(1, c/‖g‖₂), followed by weight decay, g ← g + λ·w."""
    return optax.chain(clip_by_norm(parameters.clip), optax.add_decayed_weights(parameters.weight_decay))


def clip_by_norm(bound: Any) -> optax.GradientTransformation:
    """Gradients scaled down to a norm, g·min(1, c/‖g‖₂).

    Unlike `optax.clip_by_global_norm`, it does not change a gradient if c is infinite, even if the norm
    is infinite as well.
    """

    def clip(updates: Float[Array, "*parameters"], params: Any) -> Float[Array, "*parameters"]:
        norm = jnp.sqrt(jnp.sum(updates**2))
        return updates * jnp.where(norm > bound, bound / norm, 1)

    return optax.stateless(clip)
