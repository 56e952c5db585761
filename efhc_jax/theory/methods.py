"""Findings on methods other than EF-HC: what their own theory asks for."""

from __future__ import annotations

import numpy as np

from efhc_jax.experiment.experiment import Experiment
from efhc_jax.experiment.families import member_of
from efhc_jax.runs.remarks import (
    asks_for_eigenvalues,
    has_constant_steps,
    high_enough,
    lowest_eigenvalue,
)
from efhc_jax.theory.findings import Finding, Verdict, judged
from efhc_jax.theory.weights import fixed_network

_SOURCE = "(theory of the method)"


def asked_by_method(experiment: Experiment, adjacency: np.ndarray, used: np.ndarray) -> list[Finding]:
    """A finding for each thing that the theory of the method asks for.

    Args:
        experiment: the settings.
        adjacency: (step, device, device).
        used: links in use (step, device, device).
    """
    method = member_of("method", experiment.method)
    if method is None:  # not registered here, so nothing is known
        return []
    found = []
    if method.fixed_network:  # copies of all neighbors are averaged, also over links not in use
        found.append(fixed_network(adjacency if method.keeps_copies else used))
    if asks_for_eigenvalues(experiment):
        lowest = lowest_eigenvalue(adjacency[0])
        figure = f"the lowest is {lowest:.3f}, if all links are used"
        name = f"eigenvalues of P above {method.lowest_eigenvalue:.3g} {_SOURCE}"
        found.append(judged(name, high_enough(method, lowest), figure, lowest))
    if method.constant_steps:
        schedule = str(experiment.learning_rate_schedule)
        constant = has_constant_steps(experiment)
        name = f"constant step size {_SOURCE}"
        verdict: Verdict = "holds" if constant else "does not hold"
        found.append(Finding(name, verdict, f"learning_rate_schedule={schedule!r}", None))
    return found
