"""The global loss is the mean over devices of the mean loss on their own samples."""

import jax.numpy as jnp
import numpy as np
import pytest

import oracle
from efhc_jax.data.splits import split_data
from efhc_jax.engine.objective import global_loss, global_loss_and_gradient, make_objective
from efhc_jax.models import make_model


@pytest.mark.parametrize("at_once", [7, 40, 64])
@pytest.mark.parametrize(("split", "devices"), [("labels", 3), ("dirichlet", 6)])
def test_it_is_that_of_the_definition(x64, tiny, split, devices, at_once):
    """With labels on three devices, a quarter of the samples is nobody's."""
    shards = split_data(split, tiny.train_labels, devices=devices, rng=np.random.default_rng(0))
    model, truth = make_model("logistic", (3, 3), 4), oracle.MODELS["logistic"](4)
    row = jnp.asarray(np.random.default_rng(1).normal(size=(4, 10)))
    images = oracle.normalise(tiny.train_images)
    parts = [shards.pool[a : a + n] for a, n in zip(shards.start, shards.count, strict=True)]
    assert sum(map(len, parts)) == (30 if split == "labels" else 40)
    owned = [(np.ravel(row), images[part], tiny.train_labels[part]) for part in parts]
    samples = jnp.asarray(tiny.train_images), jnp.asarray(tiny.train_labels)
    objective = make_objective(*samples, shards, at_once)
    expected = np.mean([truth.loss(*part) for part in owned])
    assert float(global_loss(model, row, objective)) == pytest.approx(expected, rel=1e-12)
    value, gradient = global_loss_and_gradient(model, row, objective)
    assert float(value) == pytest.approx(expected, rel=1e-12)
    slopes = np.mean([truth.gradient(*part) for part in owned], axis=0)
    np.testing.assert_allclose(np.ravel(gradient), slopes, atol=1e-12)
