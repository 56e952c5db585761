"""Schedules of the step size α(k) and of the thresholds γ(k), one per file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from efhc_jax.members import Registry, lazily

if TYPE_CHECKING:
    from efhc_jax.schedules.base import Schedule

SCHEDULES: Registry[Schedule] = Registry(
    {
        "power": "efhc_jax.schedules.power:SCHEDULE",
        "constant": "efhc_jax.schedules.constant:SCHEDULE",
        "cosine": "efhc_jax.schedules.cosine:SCHEDULE",
    }
)

__getattr__ = lazily(__name__, {"Cosine": "cosine", "Power": "power"})
