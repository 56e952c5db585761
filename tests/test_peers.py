"""The implementations that we are timed against follow the same trajectory as the oracle."""

import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[1]))

import oracle
from benchmarks.peers import numpy_stacked, torch_modules, torch_stacked
from benchmarks.peers.problem import SIZES, normalise, random_problem

PEERS = {
    "torch_modules": torch_modules,
    "torch_stacked": torch_stacked,
    "numpy_stacked": numpy_stacked,
}
OTHERS = ["torch_stacked", "numpy_stacked"]


def small_problem(model, runs, batch=2, **changes):
    """Fires at some devices and iterations only, in the runs that do not always fire."""
    r = {"svm": 500.0, "lenet5": 5.0}[model]
    problem = random_problem(model, runs=runs, devices=4, batch=batch, images=30, r=r)
    return problem._replace(learning_rate=(0.3, 2.0, 0.6), **changes)


def assert_same(one, other):
    np.testing.assert_array_equal(one.fired, other.fired)
    np.testing.assert_allclose(one.weights, other.weights, rtol=0, atol=1e-10)
    np.testing.assert_allclose(one.transmission_time, other.transmission_time, rtol=1e-12)


@pytest.mark.parametrize("model", ["svm", "lenet5"])
def test_problem_tests_the_trigger(model):
    fired = numpy_stacked.run(small_problem(model, runs=3), "float64").fired
    for run in (0, 1):  # EF-HC and GT
        assert 0 < fired[run].mean() < 1
    assert fired[2].all()  # ZT


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("runs", [1, 3])
def test_svm_follows_the_oracle(peer, runs):
    problem = small_problem("svm", runs)
    trajectory = PEERS[peer].run(problem, "float64")
    iterations = problem.samples.shape[1]
    for run in range(runs):
        history = oracle.simulate(
            weights=problem.weights[run],
            adjacency=np.repeat(problem.adjacency[run][None], iterations, axis=0),
            bandwidth=problem.bandwidth[run],
            samples=problem.samples[run],
            images=problem.images,
            labels=problem.labels,
            model=FixedThresholds(problem, run),
            policy="efhc",
            r=1.0,
            norm_order=2.0,
            learning_rate=problem.learning_rate,
        )
        assert history
