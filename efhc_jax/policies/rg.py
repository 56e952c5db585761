"""RG, randomized gossip: each device broadcasts with probability 1/m."""

from __future__ import annotations

from typing import TYPE_CHECKING

from efhc_jax.policies.base import Policy, Situation

if TYPE_CHECKING:
    from jaxtyping import Array, Bool


def fires(now: Situation) -> Bool[Array, "device"]:
    """u_i < 1/m, with u_i uniform on [0, 1)."""
    return now.coin < 1 / now.coin.shape[0]


POLICY = Policy(fires, uses=())
