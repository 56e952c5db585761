"""Checks in 64 bits that all implementations agree, before anything is timed."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from benchmarks.ours import Ours, evaluation
from benchmarks.peers.problem import Problem
from efhc_jax.data import Dataset
from efhc_jax.engine.sharding import to_host
from efhc_jax.errors import EfhcError

TOLERANCE = 1e-9  # for weights of about 1, after some iterations in 64 bits


class Agreement(NamedTuple):
    """The largest differences of the peers from ours."""

    iterations: int
    weights: float  # largest difference between final weights
    transmission_time: float  # largest relative difference in an iteration
    broadcasts: int  # total number, the same for all

    def to_dict(self) -> dict[str, Any]:
        """The differences for the JSON report."""
        return self._asdict()


def check_agreement(ours: Ours, problem: Problem, peers: dict[str, ModuleType]) -> Agreement:
    """Run all implementations in 64 bits and compare.

    Raises:
        EfhcError: a peer differs, so that timing it would be meaningless.
    """
    progress, recorded = ours.advanced(ours.fresh())
    weights, broadcasts = to_host((progress.state.weights, progress.state.broadcasts))
    weights = weights.reshape(problem.weights.shape)
    time = recorded["transmission_time"]
    worst = worst_time = 0.0
    for name, peer in peers.items():
        found = peer.run(problem, "float64")
        difference = float(np.abs(found.weights - weights).max())
        apart = float((np.abs(found.transmission_time - time) / np.maximum(np.abs(time), 1)).max())
        same = np.array_equal(found.fired.sum(axis=1), broadcasts)
        if not (same and difference <= TOLERANCE and apart <= TOLERANCE):
            raise EfhcError(
                f"bench: {name} does not agree with efhc_jax on {problem.model} after "
                f"{ours.iterations} iterations in 64 bits (weights differ by {difference:.2g}, "
                f"broadcasts {'agree' if same else 'differ'}); nothing was timed"
            )
        worst, worst_time = max(worst, difference), max(worst_time, apart)
    return Agreement(ours.iterations, worst, worst_time, int(broadcasts.sum()))


def check_evaluation(
    ours: Ours, data: Dataset, peers: dict[str, ModuleType], images: int = 500
) -> float:
    """Accuracy of the initial models of the first run on some images, averaged over devices.

    Raises:
        EfhcError: the accuracy of a peer differs.
    """
    some = data._replace(test_images=data.test_images[:images], test_labels=data.test_labels[:images])
    accuracy = evaluation(ours, some).work(None)["accuracy"][0]
    weights = np.array(to_host(ours.progress.state.weights)[0])
    rows = weights.reshape(len(weights), -1)
    model = ours.experiment.model
    for name, peer in peers.items():
        found = peer.evaluate(model, rows, some.test_images, some.test_labels, "float64")
        if np.abs(found - accuracy).max() > 0.5 / len(some.test_labels):  # half an image
            raise EfhcError(f"bench: {name} does not agree with efhc_jax on the accuracy of {model}")
    return float(accuracy.mean())
