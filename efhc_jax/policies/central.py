"""A coordinator averages all models in every iteration: the upper bound for decentralized policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from efhc_jax.policies.base import Policy, Situation

if TYPE_CHECKING:
    from jaxtyping import Array, Bool


def fires(now: Situation) -> Bool[Array, "device"]:
    """All devices."""
    return now.coin >= 0


POLICY = Policy(fires, uses_new_links=False, coordinated=True, uses=())
