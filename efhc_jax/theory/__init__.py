"""The paper's assumptions, measured on what a run recorded.

Theorem 1 asks for six assumptions, and the remarks for two things more. Each is a function here that
takes plain arrays or settings and returns a `Finding`. Most assumptions speak of every k ≥ 0: a finding
"holds" or "does not hold" only where that follows from the model, the schedule or a graph that never
changes. Where a run alone speaks, the figure says what it showed, and the verdict that this is all.
"""

from __future__ import annotations

from efhc_jax.theory.convergence import (
    OPTIMALITY,
    Optimum,
    consensus,
    decay_fit,
    optimality,
    optimality_gap,
)
from efhc_jax.theory.findings import UNKNOWN, Curve, DecayFit, Finding, Verdict
from efhc_jax.theory.flow import bounded_waits, information_flow, physical_connectivity
from efhc_jax.theory.objectives import GradientBounds, bounded_gradients, convexity, gradient_bounds
from efhc_jax.theory.schedules import PowerDecay, guideline, step_sizes, threshold_decay
from efhc_jax.theory.weights import simultaneous_exchange, transition_matrices, transition_weights

__all__ = [
    "OPTIMALITY",
    "UNKNOWN",
    "Curve",
    "DecayFit",
    "Finding",
    "GradientBounds",
    "Optimum",
    "PowerDecay",
    "Verdict",
    "bounded_gradients",
    "bounded_waits",
    "consensus",
    "convexity",
    "decay_fit",
    "gradient_bounds",
    "guideline",
    "information_flow",
    "optimality",
    "optimality_gap",
    "physical_connectivity",
    "simultaneous_exchange",
    "step_sizes",
    "threshold_decay",
    "transition_matrices",
    "transition_weights",
]
