"""Remarks on experiments whose method asks for something that they do not have."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import numpy as np

from efhc_jax.engine.mixing import metropolis_weights
from efhc_jax.experiment.experiment import Experiment
from efhc_jax.methods import METHODS
from efhc_jax.network.dynamics import DYNAMICS
from efhc_jax.network.slots import to_matrix
from efhc_jax.participation import PARTICIPATION
from efhc_jax.runs.prepare import links_of

_MOST_DEVICES = 500  # of a network whose eigenvalues are computed
_LOWEST = -1 / 3  # eigenvalue of P that D² asks for


def remarks(experiment: Experiment) -> list[str]:
    """Sentences about what the theory of the method asks for and the experiment does not have.

    Example:
        >>> remarks(Experiment(method="extra"))[0]
        "method='extra': its theory needs the same P in every iteration; give policy='zt'"
    """
    e, method = experiment, METHODS[experiment.method]
    if not method.fixed_network:
        return []
    missing = []
    if e.policy not in ("zt", "central") and not method.always_sends:
        missing.append("policy='zt'")
    if not DYNAMICS[e.dynamics].fixed:
        missing.append("dynamics='static'")
    closes = PARTICIPATION[e.participation].closes_links
    if closes is not None and closes(e.parameters("participation")):
        missing.append("participation='always'")
    needs = f"method={str(e.method)!r}: its theory needs"
    if missing:
        return [f"{needs} the same P in every iteration; give {' and '.join(missing)}"]
    if e.method == "d2" and e.policy != "central" and 1 < e.devices <= _MOST_DEVICES:
        lowest = _lowest_eigenvalue(e)
        if lowest < _LOWEST + 1e-6:
            return [
                f"{needs} eigenvalues of P above -1/3; the lowest is {lowest:.3f}; try another graph"
            ]
    return []


def _lowest_eigenvalue(experiment: Experiment) -> float:
    """The lowest eigenvalue of P if all links are used."""
    adjacency = to_matrix(links_of(experiment), experiment.devices)
    weights = np.asarray(metropolis_weights(adjacency), np.float64)
    transition = weights + np.diag(1 - weights.sum(1))
    return float(np.linalg.eigvalsh(transition)[0])


def warn_of_remarks(experiments: Iterable[Experiment]) -> None:
    """Warn once of each remark on some experiments."""
    for remark in dict.fromkeys(text for each in experiments for text in remarks(each)):
        warnings.warn(remark, stacklevel=3)
