"""The paper's assumptions, checked on a recorded run.

Theorem 1 has six assumptions, and the remarks add two conditions. Each is a function here that takes
plain arrays or settings and returns a `Finding`. Most assumptions are about every k ≥ 0: a finding
"holds" or "does not hold" only if that follows from the model, the schedule or a graph that never
changes. Otherwise the verdict is that a finite run cannot tell, and the figure describes the run.
"""

from __future__ import annotations

from efhc_jax.models.properties import GradientBounds
from efhc_jax.schedules.base import PowerDecay
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
from efhc_jax.theory.objectives import bounded_gradients, convexity, gradient_bounds
from efhc_jax.theory.schedules import (
    guideline,
    step_sizes,
    threshold_decay,
    unknown_step_sizes,
    unknown_threshold_decay,
)
from efhc_jax.theory.weights import (
    fixed_network,
    simultaneous_exchange,
    transition_matrices,
    transition_weights,
)

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
    "fixed_network",
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
    "unknown_step_sizes",
    "unknown_threshold_decay",
]
