"""Several local steps between two exchanges."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from efhc_jax.engine.training import Training, train
from efhc_jax.members.tracing import as_arrays
from efhc_jax.models import make_model
from efhc_jax.optimizers import OPTIMIZERS, Momentum
from efhc_jax.optimizers.base import start

DEVICES, STEPS = 3, 5
MODEL = make_model("svm", (3, 3), 4)
OPTIMIZER = OPTIMIZERS["momentum"]


def arguments(data, steps, optimizer):
    rng = np.random.default_rng(0)
    samples = rng.integers(0, len(data.train_labels), (steps, DEVICES, 2))
    weights = jax.vmap(MODEL.init)(jax.random.split(jax.random.key(0), DEVICES))
    parameters = as_arrays(OPTIMIZER, Momentum(momentum=0.8))
    memory = () if optimizer is None else start(optimizer, parameters, weights)
    images, labels = jnp.asarray(data.train_images)[samples], jnp.asarray(data.train_labels)[samples]
    trains = jnp.array([True, True, False])
    return weights, images, labels, trains, jnp.float32(0.1), parameters, memory


@pytest.mark.parametrize("optimizer", [None, OPTIMIZER], ids=["sgd", "momentum"])
def test_they_are_single_steps_one_after_the_other(tiny, optimizer):
    weights, images, labels, *others, memory = arguments(tiny, STEPS, optimizer)
    all_steps = Training(MODEL, optimizer, STEPS)
    found = train(all_steps, weights, images, labels, *others, memory)
    moved = weights
    for step in range(STEPS):
        one = train(Training(MODEL, optimizer), moved, images[step], labels[step], *others, memory)
        moved, memory = one.added(moved), one.memory
        if step == 0:
            np.testing.assert_array_equal(found.loss, one.loss)
            np.testing.assert_array_equal(found.gradient, one.gradient)
    np.testing.assert_allclose(found.added(weights), moved, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found.added(weights)[2], weights[2])
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-5), found.memory, memory)


def test_the_program_does_not_grow_with_their_number(tiny):
    def size(steps):
        def added(*given):
            return train(Training(MODEL, OPTIMIZER, steps), *given).added(given[0])

        return len(jax.jit(added).lower(*arguments(tiny, steps, OPTIMIZER)).as_text().splitlines())

    assert size(20) == size(3)
