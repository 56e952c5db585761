"""Gradients of devices that may not train in every iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp

from efhc_jax.methods.base import Turn
from efhc_jax.models.rows import for_each

if TYPE_CHECKING:
    from jaxtyping import Array, Float


def latest(turn: Turn, before: Float[Array, "device *parameters"]) -> Float[Array, "device *parameters"]:
    """G(k), in which a device that does not train now has its gradient of before."""
    if turn.training is None:
        return turn.gradient
    return jnp.where(for_each(turn.training, before), turn.gradient, before)
