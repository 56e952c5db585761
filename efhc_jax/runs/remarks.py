"""Remarks on experiments whose method asks for something that they do not have."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import numpy as np

from efhc_jax.engine.mixing import metropolis_weights
from efhc_jax.experiment.experiment import Experiment
from efhc_jax.experiment.families import member_of
from efhc_jax.methods import METHODS
from efhc_jax.methods.base import Method
from efhc_jax.network.dynamics import DYNAMICS
from efhc_jax.network.slots import to_matrix
from efhc_jax.participation import PARTICIPATION
from efhc_jax.runs.prepare import links_of

_MOST_DEVICES = 500  # of a network whose eigenvalues are computed
_ROUNDING = 1e-6  # of eigenvalues, which are computed from weights in 32 bits


def remarks(experiment: Experiment) -> list[str]:
    """Sentences about what the theory of the method asks for and the experiment does not have.

    Example:
        >>> for remark in remarks(Experiment(method="extra")):
        ...     print(remark)
        method='extra': its theory needs the same P in every iteration; give policy='zt'
        method='extra': its theory needs a constant step size; give learning_rate_schedule='constant'
    """
    method, needs = METHODS[experiment.method], []
    if method.fixed_network and (missing := _what_changes(experiment, method)):
        needs.append(f"the same P in every iteration; give {' and '.join(missing)}")
    elif asks_for_eigenvalues(experiment):
        lowest = lowest_eigenvalue(to_matrix(links_of(experiment), experiment.devices))
        if not high_enough(method, lowest):
            bound = f"{method.lowest_eigenvalue:.3g}"
            needs.append(
                f"eigenvalues of P above {bound}; the lowest is {lowest:.3f}; try another graph"
            )
    if method.constant_steps and not has_constant_steps(experiment):
        needs.append("a constant step size; give learning_rate_schedule='constant'")
    return [f"method={str(experiment.method)!r}: its theory needs {need}" for need in needs]


def has_constant_steps(experiment: Experiment) -> bool:
    """Whether the schedule of α states that it is constant."""
    name = "learning_rate_schedule"
    law = getattr(member_of(name, experiment[name]), "law", None)
    return law is not None and law(1.0, experiment.parameters(name)).exponent == 0


def asks_for_eigenvalues(experiment: Experiment) -> bool:
    """Whether the theory of the method asks for eigenvalues of P, in a network where they are computed.

    Those of large networks take long, and averages by a coordinator have none that are negative.
    """
    asks = METHODS[experiment.method].lowest_eigenvalue is not None
    return asks and experiment.policy != "central" and 1 < experiment.devices <= _MOST_DEVICES


def lowest_eigenvalue(adjacency: np.ndarray) -> float:
    """The lowest eigenvalue of P if all links are used.

    Example:
        >>> round(lowest_eigenvalue(np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0]], bool)), 6) + 0.0
        0.0
    """
    weights = np.asarray(metropolis_weights(adjacency), np.float64)
    transition = weights + np.diag(1 - weights.sum(1))
    return float(np.linalg.eigvalsh(transition)[0])


def high_enough(method: Method, lowest: float) -> bool:
    """Whether the lowest eigenvalue of P is above what the theory of a method needs."""
    return method.lowest_eigenvalue is None or lowest >= method.lowest_eigenvalue + _ROUNDING


def warn_of_remarks(experiments: Iterable[Experiment]) -> None:
    """Warn once of each remark on some experiments; of runs that differ in the seed, on the first."""
    first: dict[Experiment, Experiment] = {}
    for each in experiments:
        if _asks(METHODS[each.method]):
            first.setdefault(each.inherit({"seed": 0}), each)
    for remark in dict.fromkeys(text for each in first.values() for text in remarks(each)):
        warnings.warn(remark, stacklevel=3)


def _asks(method: Method) -> bool:
    """Whether the theory of a method asks for anything."""
    return method.fixed_network or method.lowest_eigenvalue is not None or method.constant_steps


def _what_changes(e: Experiment, method: Method) -> list[str]:
    """Settings that make P the same in all iterations. With copies, P is over all links."""
    missing = []
    if not method.keeps_copies and e.policy not in ("zt", "central"):
        missing.append("policy='zt'")
    if not DYNAMICS[e.dynamics].fixed:
        missing.append("dynamics='static'")
    closes = PARTICIPATION[e.participation].closes_links
    if closes is not None and closes(e.parameters("participation")):
        missing.append("participation='always'")
    return missing
