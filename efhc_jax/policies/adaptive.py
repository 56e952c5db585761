"""Adaptive thresholds: each device broadcasts at a chosen rate, whatever its data and its drift.

The paper leaves thresholds that follow the data to future work. Here the scale of a device's threshold
is adjusted after every iteration: a broadcast raises it, an iteration without one lowers it, in such
proportions that it settles where broadcasts have the chosen rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax.numpy as jnp

from efhc_jax.members import parameter
from efhc_jax.policies.base import Policy, Situation

if TYPE_CHECKING:
    from jaxtyping import Array, Bool, Float


@dataclass(frozen=True)
class Adaptive:
    """Parameters of the policy `adaptive`."""

    rate: float = parameter(
        0.1,
        "Broadcasts per iteration of a device with the mean bandwidth; others in proportion to theirs.",
        low=0,
        high=1,
        above_low=True,
    )
    gain: float = parameter(
        0.3, "Relative change of a threshold by a broadcast.", low=0, high=1, above_low=True
    )


def init(now: Situation, parameters: Adaptive) -> Float[Array, "device"]:
    """Scales of 0, which stand for "not yet known"."""
    return jnp.zeros_like(now.deviation)


def fires(
    now: Situation, parameters: Adaptive, scale: Float[Array, "device"]
) -> tuple[Bool[Array, "device"], Float[Array, "device"]]:
    """e_i ≥ θ_i(k)·γ(k), with log θ_i(k+1) = log θ_i(k) + gain·(v_i(k) − p_i), p_i = min(1, rate·b_i/b̄).

    The sum of v_i(k) − p_i over a run telescopes, so that the mean rate of a device differs from p_i by
    log(θ_i(K)/θ_i(0)) / (gain·K). A device first broadcasts when it first moves, which sets its scale.
    """
    share = jnp.minimum(1, parameters.rate * now.bandwidth / now.bandwidth.mean())
    known = scale > 0
    fired = jnp.where(known, now.deviation >= scale * now.decay, now.deviation > 0)
    scale = jnp.where(known, scale, now.deviation / now.decay)
    return fired, scale * jnp.exp(parameters.gain * (fired - share))


POLICY = Policy(fires, parameters=Adaptive, init=init, uses=("norm_order", "threshold_schedule"))
