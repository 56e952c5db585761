"""Every model of the registry, and each one's own numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

import efhc_jax as efhc
from efhc_jax.data.splits import split_data
from efhc_jax.models import MODELS, make_model
from efhc_jax.models.base import logits_of_all, normalise
from efhc_jax.models.properties import Properties
from efhc_jax.models.quadratic import optimum
from efhc_jax.models.svm import hinge

SHAPE, CLASSES = (28, 28), 10


def batch(size=3):
    rng = np.random.default_rng(0)
    images = normalise(jnp.asarray(rng.integers(0, 256, (size, *SHAPE), dtype=np.uint8)))
    return images, jnp.asarray(rng.integers(0, CLASSES, size))


def objective(model):
    return lambda row, images, labels: jnp.mean(model.loss(model.logits(row, images), labels))


def smooth_losses_and_own(model):
    return [*model.properties.smooth_losses, model.loss]


@pytest.mark.parametrize(
    ("name", "size"), [("svm", 7850), ("lenet5", 61706), ("logistic", 7850), ("quadratic", 7840)]
)
def test_number_of_parameters(name, size):
    assert make_model(name, SHAPE, CLASSES).size == size


@pytest.mark.parametrize("name", MODELS)
class TestConformance:
    """What the engine relies on, for whatever is registered."""

    def test_shapes_and_types(self, name):
        model = make_model(name, SHAPE, CLASSES)
        images, labels = batch(3)
        row = model.init(jax.random.key(0))
        logits = model.logits(row, images)
        assert row.size == model.size
        assert logits.shape == (3, CLASSES)
        assert model.loss(logits, labels).shape == (3,)
        assert row.dtype == logits.dtype == jnp.float32

    def test_devices_start_from_different_models(self, name):
        model = make_model(name, SHAPE, CLASSES)
        first, second = (model.init(jax.random.key(seed)) for seed in (0, 1))
        assert not np.allclose(first, second)
        assert np.isfinite(first).all()

    def test_samples_of_a_batch_do_not_touch_each_other(self, x64, name):
        model = make_model(name, SHAPE, CLASSES)
        images, _ = batch(3)
        row = model.init(jax.random.key(0))
        together = model.logits(row, images)
        for position in range(3):
            alone = model.logits(row, images[position : position + 1])
            np.testing.assert_allclose(alone[0], together[position], rtol=1e-9)

    def test_many_rows_on_the_same_images_score_as_each_alone(self, x64, name):
        model = make_model(name, SHAPE, CLASSES)
        images, _ = batch(3)
        rows = jax.vmap(model.init)(jax.random.split(jax.random.key(0), 4))
        together = logits_of_all(model, rows, images)
        assert together.shape == (4, 3, CLASSES)
        for row, scores in zip(rows, together, strict=True):
            np.testing.assert_allclose(scores, model.logits(row, images), rtol=1e-9)

    def test_many_rows_score_on_accelerators_as_on_a_cpu(self, x64, name, monkeypatch):
        model = make_model(name, SHAPE, CLASSES)
        images, _ = batch(3)
        rows = jax.vmap(model.init)(jax.random.split(jax.random.key(0), 4))
        here = logits_of_all(model, rows, images)

        def elsewhere(*arguments, default, **_):
            return default(*arguments)

        monkeypatch.setattr("jax.lax.platform_dependent", elsewhere)
        np.testing.assert_allclose(logits_of_all(model, rows, images), here, rtol=1e-9)

    def test_gradient_against_finite_differences(self, x64, name):
        model = make_model(name, SHAPE, CLASSES)
        images, labels = batch(2)
        row = model.init(jax.random.key(0))
        loss = jax.jit(objective(model))
        gradient = jax.jit(jax.grad(objective(model)))(row, images, labels)
        assert gradient.dtype == jnp.float64
        rng = np.random.default_rng(1)
        for _ in range(6):
            direction = rng.normal(size=row.shape) / np.sqrt(model.size)
            h = 1e-6
            rise = loss(row + h * direction, images, labels) - loss(row - h * direction, images, labels)
            np.testing.assert_allclose(
                jnp.vdot(gradient, direction), rise / (2 * h), rtol=1e-5, atol=1e-9
            )

    def test_its_properties_can_be_part_of_a_static_argument(self, name):
        model = make_model(name, SHAPE, CLASSES)
        assert hash(model) == hash(model._replace(properties=Properties(*model.properties)))

    def test_its_losses_are_within_the_bounds_that_it_states(self, x64, name):
        model = make_model(name, SHAPE, CLASSES)
        images, labels = batch(4)
        for scale in (0.1, 1, 10):
            scores = model.logits(scale * model.init(jax.random.key(0)), images)
            losses = [loss(scores, labels) for loss in smooth_losses_and_own(model)]
            assert (np.diff(losses, axis=0) >= 0).all(), "each closer to the last, from below"
            assert (losses[-1] >= model.properties.lowest_loss).all()
            if (bounds := model.properties.score_gradient) is not None:
                slopes = jax.grad(lambda scores: model.loss(scores, labels).sum())(scores)
                assert np.linalg.norm(slopes, axis=1).max() <= bounds.two + 1e-12
                assert np.abs(slopes).max() <= bounds.infinity + 1e-12

    def test_same_object_for_the_same_arguments(self, name):
        assert make_model(name, SHAPE, CLASSES) is make_model(name, SHAPE, CLASSES)


CONVEX = [name for name in MODELS if make_model(name, SHAPE, CLASSES).properties.convex]


@pytest.mark.parametrize("name", CONVEX)
def test_what_says_that_it_is_convex_lies_above_its_tangents(x64, name):
    """F(w') ≥ F(w) + ∇F(w)ᵀ(w' − w), as Assumption 3 has it."""
    model = make_model(name, SHAPE, CLASSES)
    images, labels = batch(4)
    for one in (model._replace(loss=loss) for loss in smooth_losses_and_own(model)):
        tangent = jax.jit(jax.value_and_grad(objective(one)))
        for seed in range(10):
            here, there = (3 * model.init(jax.random.key(key)) for key in (seed, seed + 10))
            value, slope = tangent(here, images, labels)
            assert tangent(there, images, labels)[0] >= value + jnp.vdot(slope, there - here) - 1e-9


def test_hinge_by_hand():
    logits = jnp.array([[3.0, 1.0, 2.5, -1.0], [0.0, 0.0, 0.0, 0.0]])
    # label 0: only class 2 is within the margin, 1 − 3 + 2.5 = 0.5; label 1: three margins of 1.
    np.testing.assert_allclose(hinge(logits, jnp.array([0, 1])), [0.5 / 4, 3 / 4])


def test_logistic_loss_by_hand():
    model = make_model("logistic", SHAPE, CLASSES)
    loss = model.loss(jnp.zeros((1, CLASSES)), jnp.array([4]))
    np.testing.assert_allclose(loss, [np.log(CLASSES)], rtol=1e-6)


def test_quadratic_loss_by_hand(x64):
    model = make_model("quadratic", (1, 2), 2)
    row = jnp.array([1.0, 2.0, -1.0, 0.0])  # centroids (1, 2) and (−1, 0)
    logits = model.logits(row, jnp.array([[[1.0, 1.0]]]))
    np.testing.assert_allclose(logits, [[-0.5, -2.5]])
    np.testing.assert_allclose(model.loss(logits, jnp.array([1])), [2.5])


def test_quadratic_optimum_has_no_gradient(x64, tiny):
    model = make_model("quadratic", tiny.image_shape, tiny.classes)
    rng = np.random.default_rng(0)
    shards = split_data("dirichlet", tiny.train_labels, devices=3, dirichlet_alpha=0.5, rng=rng)
    owned = [shards.pool[s : s + c] for s, c in zip(shards.start, shards.count, strict=True)]
    images = normalise(jnp.asarray(tiny.train_images))
    best = optimum(np.asarray(images), tiny.train_labels, owned)

    def global_loss(row):
        parts = [objective(model)(row, images[o], jnp.asarray(tiny.train_labels[o])) for o in owned]
        return sum(parts) / len(parts)

    np.testing.assert_allclose(jax.grad(global_loss)(jnp.asarray(best)), 0, atol=1e-12)


class NnxLeNet5(nnx.Module):
    """The same network, as Flax would have it."""

    def __init__(self, rngs):
        self.conv1 = nnx.Conv(1, 6, (5, 5), padding="VALID", rngs=rngs)
        self.conv2 = nnx.Conv(6, 16, (5, 5), padding="VALID", rngs=rngs)
        self.conv3 = nnx.Conv(16, 120, (5, 5), padding="VALID", rngs=rngs)
        self.dense1 = nnx.Linear(120, 84, rngs=rngs)
        self.dense2 = nnx.Linear(84, 10, rngs=rngs)

    def __call__(self, images):
        black = float(normalise(jnp.zeros((), jnp.uint8)))
        x = jnp.pad(images, ((0, 0), (2, 2), (2, 2)), constant_values=black)[..., None]
        x = nnx.avg_pool(jnp.tanh(self.conv1(x)), (2, 2), (2, 2))
        x = nnx.avg_pool(jnp.tanh(self.conv2(x)), (2, 2), (2, 2))
        x = jnp.tanh(self.conv3(x)).reshape(len(x), -1)
        return self.dense2(jnp.tanh(self.dense1(x)))


def test_lenet5_is_the_network_that_flax_computes():
    module = NnxLeNet5(nnx.Rngs(0))
    pieces = []
    for layer in (module.conv1, module.conv2, module.conv3, module.dense1, module.dense2):
        kernel = np.moveaxis(np.asarray(layer.kernel[...]), (-1, -2), (0, 1))  # (out, in, …)
        pieces += [kernel.ravel(), np.asarray(layer.bias[...]) + 0.1]
        layer.bias[...] = layer.bias[...] + 0.1
    images, _ = batch(4)
    ours = make_model("lenet5", SHAPE, CLASSES).logits(jnp.concatenate(pieces), images)
    np.testing.assert_allclose(ours, module(images), atol=2e-5)


def test_lenet5_refuses_other_images():
    with pytest.raises(efhc.ExperimentError, match="28×28"):
        make_model("lenet5", (8, 8), 10)


def test_a_flax_module_of_ones_own_plugs_in(tiny, monkeypatch):
    class Perceptron(nnx.Module):
        def __init__(self, rngs):
            self.hidden = nnx.Linear(9, 5, rngs=rngs)
            self.out = nnx.Linear(5, 4, rngs=rngs)

        def __call__(self, images):
            return self.out(nnx.tanh(self.hidden(images.reshape(len(images), -1))))

    def perceptron(image_shape, classes):
        return efhc.from_nnx(Perceptron, optax.softmax_cross_entropy_with_integer_labels)

    monkeypatch.setitem(MODELS, "perceptron", perceptron)
    experiment = efhc.Experiment(
        model="perceptron",
        devices=3,
        iterations=200,
        eval_every=100,
        policy="zt",
        split="iid",
        connectivity=1.0,
        learning_rate=0.3,
        batch_size=4,
    )
    result = efhc.simulate(experiment, tiny)
    assert float(result.accuracy[-1].mean()) > float(result.accuracy[0].mean()) + 0.3


def test_a_flax_module_with_other_state_is_refused():
    class Normalised(nnx.Module):
        def __init__(self, rngs):
            self.norm = nnx.BatchNorm(9, rngs=rngs)

        def __call__(self, images):
            return self.norm(images.reshape(len(images), -1))

    with pytest.raises(TypeError, match="BatchStat"):
        efhc.from_nnx(Normalised, optax.softmax_cross_entropy_with_integer_labels)
