"""Decay with a power of the iteration, as in the paper."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import optax

from efhc_jax.members import parameter
from efhc_jax.schedules.base import PowerDecay, Schedule


@dataclass(frozen=True)
class Power:
    """Parameters of the schedule `power`."""

    offset: float = parameter(1.0, "Offset b of a / (b + k)^c.", low=0, above_low=True)
    exponent: float = parameter(0.5, "Exponent c of a / (b + k)^c.", low=0)


def power(scale: jax.typing.ArrayLike, iterations: object, parameters: Power) -> optax.Schedule:
    """α(k) = a / (b + k)^c.

    Example:
        >>> schedule = power(1.0, 100, Power(offset=1.0, exponent=0.5))
        >>> float(schedule(3))
        0.5
    """

    def schedule(count: jax.typing.ArrayLike) -> jax.Array:
        return jnp.asarray(scale) / jnp.power(parameters.offset + count, parameters.exponent)

    return schedule


def law(scale: float, parameters: Power) -> PowerDecay:
    """The schedule itself."""
    return PowerDecay(scale, parameters.offset, parameters.exponent)


SCHEDULE = Schedule(power, Power, law, uses_length=False)
