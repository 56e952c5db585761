"""GT, global threshold: one threshold for all devices, from the mean bandwidth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from efhc_jax.policies.base import Policy, Situation

if TYPE_CHECKING:
    from jaxtyping import Array, Bool


def fires(now: Situation) -> Bool[Array, "device"]:
    """e_i ≥ r·ρ·γ(k), with ρ = 1/(mean bandwidth)."""
    return now.deviation >= now.r / now.bandwidth.mean() * now.decay


POLICY = Policy(fires, uses=("r", "norm_order", "threshold_schedule"))
