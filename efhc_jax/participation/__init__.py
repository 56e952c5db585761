"""Rules of participation, one per file, with an entry each in `PARTICIPATION`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from efhc_jax.members import Registry, lazily

if TYPE_CHECKING:
    from efhc_jax.participation.base import Participation

PARTICIPATION: Registry[Participation] = Registry(
    {
        "always": "efhc_jax.participation.always:PARTICIPATION",
        "sporadic": "efhc_jax.participation.sporadic:PARTICIPATION",
    }
)

__getattr__ = lazily(__name__, {"Sporadic": "sporadic"})
