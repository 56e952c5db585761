"""The least global loss, against other ways to find it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog, minimize

import oracle
import small
from efhc_jax.data.splits import split_data
from efhc_jax.errors import ExperimentError
from efhc_jax.models import make_model
from efhc_jax.models.linear import linear
from efhc_jax.models.properties import Properties
from efhc_jax.models.quadratic import optimum
from efhc_jax.models.svm import hinge, smoothed_hinge
from efhc_jax.theory.optimum import find_optimum


@pytest.fixture(scope="module")
def overlapping():
    """Images of four classes that no line separates, on devices with different amounts of data."""
    data = small.overlapping(60)
    shards = split_data("dirichlet", data.train_labels, devices=5, rng=np.random.default_rng(0))
    owned = [shards.pool[a : a + n] for a, n in zip(shards.start, shards.count, strict=True)]
    share = np.zeros(60)
    for part in owned:
        share[part] = 1 / (5 * len(part))
    return data, shards, share


def inputs_of(data):
    seen = oracle.normalise(data.train_images).reshape(60, -1)
    return np.concatenate([seen, np.ones((60, 1))], axis=1)


def of_package(name, data):
    return make_model(name, data.image_shape, data.classes)


def test_quadratic_is_the_closed_form(overlapping):
    data, shards, share = overlapping
    owned = [shards.pool[a : a + n] for a, n in zip(shards.start, shards.count, strict=True)]
    images = oracle.normalise(data.train_images).reshape(60, -1)
    means = optimum(images, data.train_labels, owned).reshape(4, 4)
    expected = share @ (0.5 * ((images - means[data.train_labels]) ** 2).sum(1))
    found = find_optimum(of_package("quadratic", data), data, shards)
    assert found.lowest <= expected <= found.value * (1 + 1e-12), "up to rounding"
    assert found.value == pytest.approx(expected, abs=2e-5)


def test_logistic_is_what_newton_finds(overlapping):
    data, shards, share = overlapping
    model, images = oracle.MODELS["logistic"](4), oracle.normalise(data.train_images).reshape(60, -1)
    each = [(images[[s]], data.train_labels[[s]]) for s in range(60)]

    def loss(row):
        return sum(weight * model.loss(row, *one) for weight, one in zip(share, each, strict=True))

    def slope(row):
        return sum(weight * model.gradient(row, *one) for weight, one in zip(share, each, strict=True))

    expected = minimize(loss, np.zeros(20), jac=slope, method="Newton-CG", tol=1e-10).fun
    found = find_optimum(of_package("logistic", data), data, shards)
    assert 0.1 < found.lowest <= expected + 1e-9
    assert found.value == pytest.approx(expected, abs=2e-5)


def test_svm_is_the_linear_programme(overlapping):
    """The least Σ share/C·ξ_sc with ξ_sc ≥ 1 − s_y + s_c and ξ_sc ≥ 0, solved exactly."""
    data, shards, share = overlapping
    inputs = inputs_of(data)
    pairs = [(s, c) for s in range(60) for c in range(4) if c != data.train_labels[s]]
    rows = np.zeros((len(pairs), 20 + len(pairs)))
    for row, (s, c) in enumerate(pairs):
        label = data.train_labels[s]
        rows[row, 5 * c : 5 * c + 5] += inputs[s]
        rows[row, 5 * label : 5 * label + 5] -= inputs[s]
        rows[row, 20 + row] = -1
    cost = np.concatenate([np.zeros(20), [share[s] / 4 for s, _ in pairs]])
    bounds = [(None, None)] * 20 + [(0, None)] * len(pairs)
    expected = linprog(cost, rows, -np.ones(len(pairs)), bounds=bounds).fun
    found = find_optimum(of_package("svm", data), data, shards)
    assert 0.1 < found.lowest <= expected <= found.value + 1e-9
    assert found.value == pytest.approx(expected, rel=0.01)


def test_a_problem_that_can_be_separated_has_least_loss_zero(tiny):
    shards = split_data("iid", tiny.train_labels, devices=4, rng=np.random.default_rng(0))
    for name in ("svm", "logistic"):
        found = find_optimum(of_package(name, tiny), tiny, shards)
        assert found.lowest == 0
        assert 0 <= found.value < 1e-4


def squares(logits, labels):
    """Half the squared distance ½‖s − e_y‖² from the scores to the label."""
    return 0.5 * jnp.sum((logits - jax.nn.one_hot(labels, logits.shape[-1])) ** 2, axis=-1)


@pytest.mark.parametrize("least", [0.0, -10.0])
def test_a_convex_model_of_ones_own_is_what_least_squares_finds(overlapping, least):
    """Also with a loss that goes below zero, about which it states nothing but convexity."""
    data, shards, share = overlapping
    weight = np.sqrt(share)[:, None]
    inputs, labels = inputs_of(data), np.eye(4)[data.train_labels]
    best, *_ = np.linalg.lstsq(weight * inputs, weight * labels)
    expected = share @ (0.5 * ((inputs @ best - labels) ** 2).sum(1)) + least

    def loss(logits, labels):
        return squares(logits, labels) + least

    mine = linear(data.image_shape, data.classes, loss, Properties(convex=True))
    for model in (mine, mine._replace(properties=Properties(convex=True))):  # in its own coordinates too
        found = find_optimum(model, data, shards)
        assert expected - 2e-5 <= found.lowest <= expected + 1e-9
        assert found.value == pytest.approx(expected, abs=2e-5)


def test_the_lowest_loss_that_a_model_states_bounds_the_optimum(overlapping):
    data, shards, _ = overlapping
    stated = Properties(convex=True, lowest_loss=1e3)  # which is wrong, so that it can be noticed
    model = linear(data.image_shape, data.classes, squares, stated)
    assert find_optimum(model, data, shards).lowest == 1e3


@pytest.mark.parametrize("convex", [None, False])
def test_a_model_that_is_not_known_to_be_convex_is_refused(overlapping, convex):
    data, shards, _ = overlapping
    model = linear(data.image_shape, data.classes, squares, Properties(convex=convex))
    with pytest.raises(ExperimentError, match=f"convex={convex}: .*Properties"):
        find_optimum(model, data, shards)


def test_the_smoothed_hinge_is_just_below_the_hinge():
    rng = np.random.default_rng(0)
    logits = jnp.asarray(rng.normal(size=(500, 4)), jnp.float32)
    labels = jnp.asarray(rng.integers(0, 4, 500))
    for width in (1.0, 0.1):
        below = np.asarray(hinge(logits, labels) - smoothed_hinge(width)(logits, labels))
        assert (below >= -1e-6).all()
        assert (below <= 0.75 * width / 2 + 1e-6).all()
        assert below.max() > 0.3 * width
