"""Liveness: arrays count from where they are made to where they are last used."""

import jax
import jax.numpy as jnp
import pytest

from efhc_jax.engine.gradients import loss_and_gradient
from efhc_jax.models import make_model
from efhc_jax.runs.liveness import held_by

X = jax.ShapeDtypeStruct((1000,), jnp.float32)
EACH = 4000


@pytest.mark.parametrize(
    ("function", "arrays"),
    [
        (lambda x: x + 1, 1),
        (lambda x: ((x + 1) * 2) * 3, 2),  # an operation and what it reads
        (lambda x: (x + 1) + (x + 2), 3),
        (lambda x: (lambda once: (once * 2) * 3 + once)(x + 1), 3),
        (jax.jit(lambda x: (x + 1) * 2), 3),  # its result, and two within
    ],
)
def test_arrays_alive_at_once(function, arrays):
    assert held_by(function, X).bytes == arrays * EACH


def test_the_body_of_a_loop_counts_once():
    def loop(x):
        return jax.lax.fori_loop(0, 50, lambda _, y: (y + 1) * 2, x)

    assert held_by(loop, X).bytes < 6 * EACH


def test_nothing_is_allocated():
    huge = jax.ShapeDtypeStruct((10**7, 10**6), jnp.float32)
    assert held_by(lambda x: x + 1, huge).bytes == 4 * 10**13


@pytest.mark.parametrize(("name", "batch"), [("svm", 32), ("lenet5", 8)])
def test_gradients_take_no_more_than_that_and_not_much_less(name, batch):
    model = make_model(name, (28, 28), 10)
    row = jax.eval_shape(model.init, jax.random.key(0))
    shapes = (
        jax.ShapeDtypeStruct((4, *row.shape), row.dtype),
        jax.ShapeDtypeStruct((4, batch, 28, 28), jnp.uint8),
        jax.ShapeDtypeStruct((4, batch), jnp.int32),
    )

    def gradients(*arguments):
        return loss_and_gradient(model, *arguments)

    found = jax.jit(gradients).lower(*shapes).compile().memory_analysis()
    compiled = found.temp_size_in_bytes + found.output_size_in_bytes
    assert compiled / 1.5 < held_by(gradients, *shapes).bytes < 3 * compiled


def test_larger_programs_have_more_operations():
    small, large = (held_by(f, X).operations for f in (lambda x: x + 1, lambda x: jnp.sin(x + 1) * 2))
    assert small < large
