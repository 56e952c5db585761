"""Contenders: every candidate is an experiment, and all take equally many gradient steps."""

import pytest

from efhc_jax.comparison.contenders import (
    BASELINE,
    CONTENDERS,
    SIZES,
    Candidate,
    at_edges,
    candidates,
    experiment_of,
    size_of,
)

FULL = SIZES["full"]["svm"]


def all_candidates(contender, size=FULL):
    return [one for group in candidates(contender, size) for one in group]


@pytest.mark.parametrize("model", ["svm", "lenet5"])
@pytest.mark.parametrize("contender", CONTENDERS)
def test_candidates_are_different_experiments_with_equally_many_gradients(contender, model):
    size = SIZES["full"][model]
    found = all_candidates(contender, size)
    experiments = {experiment_of(model, one, size) for one in found}
    assert len(experiments) == len(found)
    assert {one.number for one in found} == set(range(len(found)))
    assert {each.iterations * each.local_steps for each in experiments} == {size.gradients}
    assert {each.eval_every * each.local_steps for each in experiments} == {size.eval_every}
    assert {each.labels_per_device for each in experiments} == {1 if model == "svm" else 2}


def test_every_step_size_is_tried_with_every_combination():
    settings = [one.settings for one in all_candidates("choco")]
    assert len(settings) == 3 * 4 * len(FULL.learning_rates)
    assert {"method.ratio": 0.1, "method.gamma": 0.3, "learning_rate": 0.03} in settings


def test_settings_are_tuned_on_other_seeds():
    for sizes in SIZES.values():
        for size in sizes.values():
            assert not set(size.tuning_seeds) & set(range(size.seeds))


def test_presets_can_have_other_numbers_of_seeds():
    assert size_of("svm", "full", 30) == FULL._replace(seeds=30)
    assert size_of("svm", "full") == FULL


def test_the_first_and_last_of_three_or_more_values_are_at_an_edge():
    def edges(contender, **settings):
        return at_edges(Candidate(contender, 0, settings), FULL)

    low, middle, high = FULL.learning_rates[0], FULL.learning_rates[1], FULL.learning_rates[-1]
    assert edges("dpsgd", learning_rate=low) == edges("dpsgd", learning_rate=high) == ["learning_rate"]
    assert edges("dpsgd", learning_rate=middle) == []
    assert edges(BASELINE, r=3.0, learning_rate=low) == ["r", "learning_rate"]
    sparq = {"r": 10.0, "method.ratio": 0.1, "method.gamma": 0.3}
    assert edges("sparq", **sparq, learning_rate=middle) == [], "of two values both are"
