"""Accuracy at equal costs: rounds, and what is reached within a budget."""

import numpy as np
import pytest

import efhc_jax as efhc
from efhc_jax.comparison.costs import Criterion, accuracy_within, spent


@pytest.fixture(scope="module")
def run():
    experiment = efhc.Experiment(policy="zt", dataset="synthetic", iterations=6, eval_every=2)
    return efhc.simulate(experiment)


@pytest.mark.parametrize("cost", ["bits", "time"])
def test_everybody_sending_once_costs_a_round(run, cost):
    np.testing.assert_allclose(spent(run, cost), [0, 2, 4, 6], rtol=1e-5)


def test_gradient_steps_count_local_steps(run):
    several = run.assign_attrs(
        experiment=run.attrs["experiment"].replace('"local_steps": 1', '"local_steps": 5')
    )
    assert spent(run, "gradients").tolist() == [0, 2, 4, 6]
    assert spent(several, "gradients").tolist() == [0, 10, 20, 30]


def test_accuracy_within_a_budget_is_interpolated_and_the_last_is_kept(run):
    accuracies = np.array([0.1, 0.3, 0.5, 0.6])
    known = run.assign(accuracy=(("evaluation", "device"), np.tile(accuracies[:, None], 10)))
    within = [accuracy_within(known, Criterion("gradients", budget)) for budget in (0, 1, 2, 5, 6, 100)]
    np.testing.assert_allclose(within, [10, 20, 30, 55, 60, 60])
    at_bits = accuracy_within(known, Criterion("bits", 3))
    assert at_bits == pytest.approx(40, rel=1e-4)


def test_a_run_that_diverged_has_no_accuracy(run):
    lost = run.assign(accuracy=run.accuracy.where(run.accuracy.evaluation < 2))
    assert np.isnan(accuracy_within(lost, Criterion("gradients", 2)))


def test_budgets_are_said_in_words():
    texts = [Criterion(cost, 300).text for cost in ("bits", "time", "gradients")]
    assert texts == [
        "the bits of 300 rounds",
        "the transmission time of 300 rounds",
        "300 gradient steps",
    ]
