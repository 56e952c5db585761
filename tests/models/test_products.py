"""Products and patches: values and gradients of the plain forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from efhc_jax.models.products import of_one_sample, patches, product, scores


def normal(*shape):
    return jnp.asarray(np.random.default_rng(len(shape)).normal(size=shape))


def assert_same(found, expected, *arguments):
    """Values and gradients agree, also mapped."""
    shape = jax.eval_shape(expected, *arguments).shape
    slope = normal(*shape)

    def both(function):
        return jax.value_and_grad(
            lambda *each: jnp.sum(function(*each) * slope), argnums=tuple(range(len(arguments)))
        )

    stacked = [jnp.stack([each, each[::-1]]) for each in arguments]
    for change, given in ((jax.jit, arguments), (jax.vmap, stacked)):
        pairs = zip(
            *(jax.tree.leaves(change(both(each))(*given)) for each in (found, expected)), strict=True
        )
        for one, other in pairs:
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("columns", [1, 3, 40])
def test_products(x64, columns):
    assert_same(product, jnp.matmul, normal(4, 7), normal(7, columns))
    assert_same(scores, lambda w, x: x @ w.T, normal(4, 7), normal(columns, 7))
    assert_same(of_one_sample, jnp.matmul, normal(1, 7), normal(7, columns))


@pytest.mark.parametrize(
    ("size", "stride", "step"), [(3, 1, 1), (3, 2, 1), (2, 1, 3), (2, 2, 1), (3, 3, 1), (1, 2, 1)]
)
def test_patches(x64, size, stride, step):
    window, strides, dilation = (2, size), (1, stride), (1, step)

    def expected(x):
        kernels = jnp.eye(2 * 2 * size).reshape(-1, 2, 2, size)  # each picks a point
        numbers = ("CHWN", "OIHW", "CHWN")
        return jax.lax.conv_general_dilated(
            x, kernels, strides, "VALID", rhs_dilation=dilation, dimension_numbers=numbers
        )

    assert_same(lambda x: patches(x, window, strides, dilation), expected, normal(2, 4, 8, 3))


def test_the_precision_that_is_asked_for_is_that_of_the_gradients_too():
    def loss(function):
        return lambda a, b: function(a, b, jax.lax.Precision.HIGHEST).sum()

    for function, *shapes in (
        (product, (2, 3), (3, 5)),
        (scores, (2, 3), (5, 3)),
        (of_one_sample, (1, 3), (3, 5)),
    ):
        arguments = [normal(*shape) for shape in shapes]
        gradient = jax.make_jaxpr(jax.grad(loss(function), (0, 1)))(*arguments)
        lines = [line for line in str(gradient).splitlines() if "dot_general" in line]
        assert (
            str(gradient).count("precision=Precision.HIGHEST")
            + str(gradient).count("precision=(Precision.HIGHEST, Precision.HIGHEST)")
            >= len(lines)
            >= 3
        )
