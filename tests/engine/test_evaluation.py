"""Correct predictions, in the forms of both kinds of platforms."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from efhc_jax.engine.evaluation import evaluate, right_by_argmax, right_by_comparison
from efhc_jax.engine.program import Samples, initialise
from efhc_jax.runs.prepare import make_spec, prepare, stack
from small import SMALL

VALUES = [0.0, 1.0, -np.inf, np.inf, np.nan]


def test_a_prediction_is_the_first_largest_score_of_which_nan_is_the_largest():
    scores = np.array([*itertools.product(VALUES, repeat=3)], np.float32)
    for label in range(3):
        expected = np.array([np.argmax(each) == label for each in scores])
        labels = jnp.full(len(scores), label)
        for is_right in (right_by_argmax, right_by_comparison):
            np.testing.assert_array_equal(is_right(jnp.asarray(scores)[None], labels)[0], expected)


def test_rows_are_compared_with_the_labels_of_their_images():
    scores = jnp.array([[[0.0, 2.0], [1.0, 0.0]], [[3.0, 2.0], [0.0, 0.0]]])
    assert right_by_comparison(scores, jnp.array([1, 0])).tolist() == [[True, True], [False, True]]


def test_accelerators_count_the_same_images_in_chunks_of_their_own(x64, tiny, monkeypatch):
    spec = make_spec(SMALL, tiny)
    states = initialise(spec, stack([prepare(SMALL, tiny)], spec.dynamics)).state
    test = Samples(jnp.asarray(tiny.test_images), jnp.asarray(tiny.test_labels))
    expected = evaluate(spec, states, test)
    model = spec.rules.model._replace(images_on_accelerators=7)  # divides no number of images
    elsewhere = spec._replace(rules=spec.rules._replace(model=model))
    monkeypatch.setattr(
        "jax.lax.platform_dependent", lambda *arguments, default, **_: default(*arguments)
    )
    found = evaluate(elsewhere, states, test)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), found, expected)
