"""The same value in every iteration."""

from __future__ import annotations

import optax

from efhc_jax.schedules.base import PowerDecay, Schedule


def constant(scale: object, iterations: object, parameters: None) -> optax.Schedule:
    """α(k) = a."""
    return optax.constant_schedule(scale)


def law(scale: float, parameters: None) -> PowerDecay:
    """A power of exponent 0."""
    return PowerDecay(scale, 1.0, 0.0)


SCHEDULE = Schedule(constant, law=law, uses_length=False)
