"""No communication: the lower bound for all other policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from efhc_jax.policies.base import Policy, Situation

if TYPE_CHECKING:
    from jaxtyping import Array, Bool


def fires(now: Situation) -> Bool[Array, "device"]:
    """No device."""
    return now.coin < 0


POLICY = Policy(fires, uses_new_links=False, uses=())
