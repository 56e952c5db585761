"""The step size α(k), which is also the decay γ(k) of the thresholds."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax


def power_decay(scale: jax.Array, offset: jax.Array, decay: jax.Array) -> optax.Schedule:
    """An optax schedule: α(k) = a / (b + k)^c.

    Example:
        >>> schedule = power_decay(1.0, 1.0, 0.5)
        >>> float(schedule(3))
        0.5
    """

    def schedule(count: jax.typing.ArrayLike) -> jax.Array:
        return scale / jnp.power(offset + count, decay)

    return schedule
