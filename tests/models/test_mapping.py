"""Convolutions and pooling in forms that map well: the same values and gradients as written."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

import efhc_jax as efhc
from efhc_jax.models.base import logits_of_all
from efhc_jax.models.mapping import mapped_well, rewritten

NHWC = ("NHWC", "HWIO", "NHWC")
LOSS = optax.softmax_cross_entropy_with_integer_labels


def normal(*shape):
    return jnp.asarray(np.random.default_rng(len(shape)).normal(size=shape))


def left(function, *arguments):
    """Names of the operations that should have been rewritten."""
    program = str(jax.make_jaxpr(rewritten(function))(*arguments))
    return [name for name in ("conv_general_dilated", "reduce_window") if name in program]


def assert_same(function, *arguments):
    """Values and gradients agree, also mapped over the first axis of stacked arguments."""
    some = normal(*jax.eval_shape(function, *arguments).shape)

    def value_and_gradients(function):
        def value(*arguments):
            return jnp.sum(function(*arguments) * some)

        return jax.value_and_grad(value, argnums=tuple(range(len(arguments))))

    stacked = [jnp.stack([each, each[::-1]]) for each in arguments]
    for change, given in ((jax.jit, arguments), (jax.vmap, stacked)):
        expected = change(value_and_gradients(function))(*given)
        for on_cpu in (False, True):
            found = change(value_and_gradients(rewritten(function, on_cpu=on_cpu)))(*given)
            jax.tree.map(
                lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11), found, expected
            )


def convolution(**settings):
    settings = {"window_strides": (1, 1), "padding": "SAME", "dimension_numbers": NHWC} | settings
    return functools.partial(jax.lax.conv_general_dilated, **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"padding": "VALID"},
        {"window_strides": (2, 1)},
        {"window_strides": (3, 2), "padding": "VALID"},  # windows side by side
        {"padding": ((2, 1), (-1, 3)), "window_strides": (1, 2)},
        {"rhs_dilation": (2, 3)},
        {"padding": ((1, 2), (0, 1)), "lhs_dilation": (2, 3), "rhs_dilation": (1, 2)},
    ],
)
def test_convolutions(x64, settings):
    images, kernels = normal(2, 7, 8, 3), normal(3, 2, 3, 4)
    assert_same(convolution(**settings), images, kernels)
    assert not left(convolution(**settings), images, kernels)


@pytest.mark.parametrize("groups", [2, 4])
@pytest.mark.parametrize(
    "settings", [{}, {"window_strides": (2, 1), "padding": "VALID"}, {"rhs_dilation": (2, 1)}]
)
def test_groups_of_channels(x64, groups, settings):
    function = convolution(feature_group_count=groups, **settings)
    arguments = normal(2, 4, 5, 4), normal(3, 3, 4 // groups, 8)
    assert_same(function, *arguments)
    assert not left(function, *arguments)


def test_other_orders_of_axes(x64):
    function = convolution(dimension_numbers=("NCHW", "OIHW", "NCHW"))
    assert_same(function, normal(2, 3, 5, 6), normal(4, 3, 3, 2))
    assert_same(
        convolution(dimension_numbers=("HWCN", "IOHW", "CNWH")), normal(5, 6, 3, 2), normal(3, 4, 3, 2)
    )


def test_one_dimension(x64):
    function = convolution(dimension_numbers=("NHC", "HIO", "NHC"), window_strides=(2,))
    assert_same(function, normal(2, 7, 3), normal(3, 3, 4))
    assert not left(function, normal(2, 7, 3), normal(3, 3, 4))


@pytest.mark.parametrize("samples", [1, 2])
def test_a_dense_layer_of_one_sample_has_a_gradient_that_is_a_product(x64, samples):
    def layer(x, weights):
        return jnp.tanh(x) @ weights

    arguments = normal(samples, 5), normal(5, 3)
    assert_same(layer, *arguments)

    def sums(function):
        gradient = jax.grad(lambda *each: function(*each).sum(), 1)
        return str(jax.make_jaxpr(gradient)(*arguments))

    assert ("pad[" in sums(rewritten(layer, on_cpu=True))) is (samples == 1)
    assert "pad[" not in sums(rewritten(layer))


def test_a_border_that_wraps_around(x64):
    def circular(images, kernels):
        return convolution(padding="VALID")(
            jnp.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)), "wrap"), kernels
        )

    assert_same(circular, normal(2, 5, 5, 2), normal(3, 3, 2, 3))


@pytest.mark.parametrize("pool", [nnx.max_pool, nnx.avg_pool, nnx.min_pool])
@pytest.mark.parametrize(
    ("window", "strides", "padding"),
    [
        ((2, 2), (2, 2), "VALID"),
        ((2, 2), (2, 2), "SAME"),
        ((3, 2), (1, 2), "SAME"),
        ((3, 3), (2, 2), ((1, 1), (0, 1))),
    ],
)
def test_pooling_with_ties(x64, pool, window, strides, padding):
    images = jnp.round(jax.nn.relu(normal(2, 7, 9, 2)))  # most windows have equal entries

    def function(x):
        return pool(x, window, strides, padding)

    assert_same(function, images)
    assert not left(function, images)


def test_not_a_number_stays_so():
    images = jnp.array([[1.0, jnp.nan, 2.0, 3.0], [jnp.nan, 1.0, 0.0, 5.0]])[..., None]
    found = rewritten(lambda x: nnx.max_pool(x, (4,), (4,)))(images)
    assert np.isnan(found).all()


@pytest.mark.parametrize("combine", [jnp.maximum, jnp.minimum, jnp.add])
def test_general_forms_of_pooling(x64, combine):
    def function(x):
        return jax.lax.reduce_window(x, 0.5, combine, (2, 3), (1, 2), "SAME")

    np.testing.assert_allclose(rewritten(function)(normal(5, 6)), function(normal(5, 6)), rtol=1e-12)
    assert not left(function, normal(5, 6))


@pytest.mark.parametrize(
    "nested", [jax.jit, jax.checkpoint, lambda f: jax.jit(jax.checkpoint(jax.jit(f)))]
)
def test_functions_within(x64, nested):
    def block(images, kernels):
        return nnx.max_pool(jax.nn.relu(convolution()(images, kernels)), (2, 2), (2, 2))

    arguments = normal(2, 4, 6, 2), normal(3, 3, 2, 3)
    assert_same(nested(block), *arguments)
    assert not left(nested(block), *arguments)


def test_what_is_not_covered_runs_as_written(x64):
    def product(x):
        return jax.lax.reduce_window(x, 1.0, jax.lax.mul, (2,), (1,), "VALID")

    np.testing.assert_allclose(rewritten(product)(normal(5)), product(normal(5)))
    assert left(product, normal(5))
    grouped = convolution(batch_group_count=2)
    arguments = normal(2, 4, 4, 3), normal(3, 3, 3, 4)
    assert_same(grouped, *arguments)
    assert left(grouped, *arguments)

    half = functools.partial(convolution(), preferred_element_type=jnp.float32)
    arguments = [normal(2, 4, 4, 2).astype(jnp.bfloat16), normal(3, 3, 2, 3).astype(jnp.bfloat16)]
    assert left(half, *arguments)
    assert rewritten(half)(*arguments).dtype == jnp.float32

    def loop(x):  # its body is left alone
        return jax.lax.scan(lambda x, _: (nnx.max_pool(x, (3,), (1,), "SAME"), x.sum()), x, None, 2)[0]

    assert_same(loop, normal(2, 5, 1))


def test_derivatives_of_ones_own_are_kept(x64):
    @jax.custom_vjp
    def doubled(x):
        return nnx.max_pool(x, (2,), (2,))

    doubled.defvjp(lambda x: (doubled(x), x), lambda x, g: (2 * jnp.ones_like(x),))
    gradient = jax.grad(lambda x: rewritten(doubled)(x).sum())(normal(2, 4, 1))
    np.testing.assert_array_equal(gradient, 2)


class Network(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Conv(1, 3, (3, 3), rngs=rngs)
        self.second = nnx.Conv(3, 4, (3, 3), strides=2, rngs=rngs)
        self.last = nnx.Linear(4, 4, rngs=rngs)

    def __call__(self, images):
        x = nnx.max_pool(nnx.relu(self.first(images[..., None])), (2, 2), (2, 2))
        return self.last(nnx.relu(self.second(x)).mean((1, 2)))


def plain(image_shape, classes):
    """A convolution and a mean, without a library."""

    def logits(row, images):
        kernels = row.reshape(1, 3, 3, classes).transpose(1, 2, 0, 3)
        return convolution()(images[..., None], kernels).mean((1, 2))

    return efhc.Model(9 * classes, lambda key: jax.random.normal(key, (9 * classes,)), logits, LOSS)


def flax(image_shape, classes):
    return efhc.from_nnx(Network, LOSS)


@pytest.mark.parametrize("factory", [plain, flax])
def test_models_of_the_users_own(x64, monkeypatch, factory):
    monkeypatch.setitem(efhc.MODELS, "own", factory)
    model, original = efhc.make_model("own", (6, 6), 4), factory((6, 6), 4)
    row = model.init(jax.random.key(0))
    assert_same(original.logits, row, normal(2, 6, 6))
    np.testing.assert_allclose(
        model.logits(row, normal(2, 6, 6)), original.logits(row, normal(2, 6, 6)), rtol=1e-9
    )
    rows = jnp.stack([row, 2 * row])
    scores = jax.vmap(original.logits, (0, None))(rows, normal(3, 6, 6))
    np.testing.assert_allclose(logits_of_all(model, rows, normal(3, 6, 6)), scores, rtol=1e-9)
    program = str(jax.make_jaxpr(model.logits)(row, normal(2, 6, 6)))
    assert "conv_general_dilated" not in program


@pytest.mark.parametrize("name", ["svm", "lenet5", "logistic", "quadratic"])
def test_a_model_without_them_is_unchanged(name):
    model = efhc.make_model(name, (28, 28), 10)
    assert mapped_well(model, (28, 28)) is model
