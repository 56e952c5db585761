"""Assumption 5 and Remarks 2 and 3: step sizes α(k), the decay of thresholds γ(k), and their scale r."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from efhc_jax.errors import ExperimentError
from efhc_jax.schedules.base import PowerDecay
from efhc_jax.theory.findings import UNKNOWN, Finding, judged

_CONDITIONS = (
    "step sizes vanish (Assumption 5)",
    "step sizes sum to infinity (Assumption 5)",
    "squared step sizes sum (Assumption 5)",
)
_DECAY = "decay of the thresholds (Remark 3)"


def step_sizes(schedule: PowerDecay) -> tuple[Finding, Finding, Finding]:
    """Assumption 5: α(k) → 0, Σ α(k) = ∞ and Σ α(k)² < ∞; for α(k) = a/(b+k)^c, c in (0.5, 1].

    The paper's own α(k) = 1/√(1+k) has c = 0.5, which violates the third.

    Returns:
        A finding per condition. The values are the limit and the sums; Σ a^p/(b+k)^(p·c) = a^p·ζ(p·c, b)
        is finite if p·c is above 1.

    Example:
        >>> [finding.verdict for finding in step_sizes(PowerDecay(exponent=0.5))]
        ['holds', 'holds', 'does not hold']
    """
    a, b, c = schedule
    if not (a > 0 and b > 0):
        raise ExperimentError(f"schedule={schedule}: give a and b above 0")
    limit = 0.0 if c > 0 else a if c == 0 else math.inf
    total, squares = _sum_of_powers(schedule, 1), _sum_of_powers(schedule, 2)
    vanishing = f"α(k) = {schedule} → {limit:g}"
    endless = f"Σα = ∞ with c = {c:g}, at most 1"
    if math.isfinite(total):
        endless = f"Σα = {total:.4g} with c = {c:g}; at most 1 is needed"
    summable = f"Σα² = {squares:.4g} with c = {c:g}, above 0.5"
    if math.isinf(squares):
        summable = f"Σα² = ∞ with c = {c:g}; above 0.5 is needed"
    if c == 0.5:
        summable += ". So the paper's own 1/√(1+k) is outside its Theorem 1"
    return (
        judged(_CONDITIONS[0], c > 0, vanishing, limit),
        judged(_CONDITIONS[1], math.isinf(total), endless, total),
        judged(_CONDITIONS[2], math.isfinite(squares), summable, squares),
    )


def unknown_step_sizes(why: str) -> tuple[Finding, ...]:
    """Assumption 5 for step sizes that are not a power of k, with the reason."""
    return tuple(Finding(condition, UNKNOWN, why, None) for condition in _CONDITIONS)


def threshold_decay(step_size: PowerDecay, threshold: PowerDecay) -> Finding:
    """Remark 3: γ(k)/α(k) → Ω, finite and above 0, and Ω = γ(0)/α(0).

    If the thresholds decreased more slowly than the steps, broadcasts would stop; if faster, they would
    happen in every iteration.

    Args:
        step_size: α.
        threshold: γ.

    Returns:
        A finding whose value is the limit.

    Example:
        >>> threshold_decay(PowerDecay(), PowerDecay())[1:4]
        ('holds', 'γ/α is 1 at k = 0 and goes to 1', 1.0)
    """
    first = threshold.scale / threshold.offset**threshold.exponent
    first *= step_size.offset**step_size.exponent / step_size.scale
    limit = 0.0 if threshold.exponent > step_size.exponent else math.inf
    if threshold.exponent == step_size.exponent:
        limit = threshold.scale / step_size.scale
    holds = 0 < limit < math.inf and math.isclose(first, limit)
    figure = f"γ/α is {first:g} at k = 0 and goes to {limit:g}"
    return judged(_DECAY, holds, figure, limit)


def unknown_threshold_decay(why: str) -> Finding:
    """Remark 3 for thresholds that do not follow a power of k, with the reason."""
    return Finding(_DECAY, UNKNOWN, why, None)


def guideline(
    bandwidth: ArrayLike, local_iterations: float, gradient_bound: float, ratio: float = 1.0
) -> float:
    """Remark 2: the r for which a device takes about K steps between broadcasts.

    r = (α(0)/γ(0)) · (1/ρ) · K · L∞, where 1/ρ is the mean of 1/ρ_i = b_i

    Args:
        bandwidth: b_i of each device.
        local_iterations: K, the desired number of steps.
        gradient_bound: L∞.
        ratio: α(0)/γ(0).

    Example:
        >>> guideline([1000.0, 9000.0], local_iterations=2, gradient_bound=0.005)
        50.0
    """
    return float(ratio * np.mean(np.asarray(bandwidth, float)) * local_iterations * gradient_bound)


def _sum_of_powers(schedule: PowerDecay, power: int) -> float:
    """Σ_k α(k)^power, over all k ≥ 0."""
    from scipy.special import zeta

    exponent = power * schedule.exponent
    return schedule.scale**power * float(zeta(exponent, schedule.offset)) if exponent > 1 else math.inf
