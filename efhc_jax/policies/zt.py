"""ZT, zero threshold: every device broadcasts in every iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from efhc_jax.policies.base import Policy, Situation

if TYPE_CHECKING:
    from jaxtyping import Array, Bool


def fires(now: Situation) -> Bool[Array, "device"]:
    """e_i ≥ 0."""
    return now.deviation >= 0


POLICY = Policy(fires, uses=())
