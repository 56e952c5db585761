"""EF-HC: a threshold per device, inversely proportional to its bandwidth (arXiv 2204.03726)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from efhc_jax.policies.base import Policy, Situation

if TYPE_CHECKING:
    from jaxtyping import Array, Bool


def fires(now: Situation) -> Bool[Array, "device"]:
    """e_i ≥ r·ρ_i·γ(k), with ρ_i = 1/b_i."""
    return now.deviation >= now.r / now.bandwidth * now.decay


POLICY = Policy(fires, uses=("r", "norm_order", "threshold_schedule"))
