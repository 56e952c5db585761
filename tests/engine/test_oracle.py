"""The oracle against arithmetic done by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import (
    MODELS,
    POLICIES,
    Device,
    bandwidths,
    metropolis_weights,
    simulate,
    transition_matrix,
    transmission_time,
)

FIRST_FOUR = ("efhc", "gt", "zt", "rg")
PATH = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]  # 0 - 1 - 2


class Pull:
    """0.5 (w - y)^2 with the label as target: the gradient is w - y."""

    def loss(self, w, x, y):
        return float(np.mean(0.5 * (w[0] - y) ** 2))

    def gradient(self, w, x, y):
        return w - np.mean(y)


class Flat:
    """No gradient, so that only the mixing moves the models."""

    def loss(self, w, x, y):
        return 0.0

    def gradient(self, w, x, y):
        return np.zeros_like(w)


def run(weights, adjacency, targets=None, **changes):
    """Models in R^1 unless told; targets (K, m) become labels, one sample a device."""
    adjacency = np.array(adjacency, dtype=bool)
    steps, m, _ = adjacency.shape
    targets = np.zeros((steps, m), int) if targets is None else np.array(targets)
    weights = np.array(weights, float).reshape(m, -1)
    setting = {
        "weights": weights,
        "adjacency": adjacency,
        "bandwidth": np.ones(m),
        "samples": np.arange(steps * m).reshape(steps, m, 1),
        "images": np.zeros((steps * m, 1, 1), np.uint8),
        "labels": targets.ravel(),
        "model": Flat(),
        "policy": "efhc",
        "r": 1e9,
        "norm_order": 2,
        "learning_rate": (1.0, 1.0, 1.0),
    }
    return simulate(**{**setting, **changes})


def links(history, k):
    rows, columns = np.nonzero(np.triu(history[k].used_links))
    np.testing.assert_array_equal(history[k].used_links, history[k].used_links.T)
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


# Two iterations on the path, alpha = gamma = 1 then 1/2, r = 4, n = 1 --------------------------
# k = 0: no drift, thresholds 4/b > 0, so nobody fires.
#        G = w - y = (0-2, 4-5, 8-8) = (-2, -1, 0);  W(1) = W(0) - G = (2, 5, 8)
#        loss = (2 + 1/2 + 0)/3
# k = 1: drift (2, 1, 0);  G = (2-4, 5-6, 8-8) = (-2, -1, 0);  loss the same
HAND = {
    "weights": [0, 4, 8],
    "adjacency": [PATH, PATH],
    "targets": [[2, 5, 8], [4, 6, 8]],
    "bandwidth": np.array([1.0, 1.0, 4.0]),
    "model": Pull(),
    "r": 4.0,
}


def test_efhc_two_iterations_by_hand():
    first, second = history = run(**HAND)
    assert not first.fired.any()
    assert links(history, 0) == []
    np.testing.assert_array_equal(first.weights.ravel(), [2, 5, 8])
    np.testing.assert_array_equal(first.last_broadcast.ravel(), [0, 4, 8])
    assert first.transmission_time == 0
    assert first.train_loss == pytest.approx(2.5 / 3)
    # Thresholds 4/b/2 = (2, 2, 1/2): device 0 fires on the equality, 1 and 2 stay silent.
    np.testing.assert_array_equal(second.fired, [True, False, False])
    assert links(history, 1) == [(0, 1)]
    # beta_01 = min(1/2, 1/3) = 1/3 by the physical degrees 1 and 2, gradients from W(1):
    # w_0 = 2 + (5-2)/3 + 2/2 = 4;  w_1 = 5 + (2-5)/3 + 1/2 = 4.5;  w_2 = 8
    np.testing.assert_allclose(second.weights.ravel(), [4, 4.5, 8], rtol=1e-15)
    np.testing.assert_array_equal(second.last_broadcast.ravel(), [2, 4, 8])
    # (1/1 * 1/1 + 1/2 * 1/1 + 0)/3
    assert second.transmission_time == pytest.approx(0.5)
    assert second.train_loss == pytest.approx(2.5 / 3)


def test_global_threshold_by_hand():
    second = run(**HAND, policy="gt")[1]
    # Mean bandwidth 2, so the threshold is 4/2/2 = 1 for all: devices 0 and 1 fire, both links.
    np.testing.assert_array_equal(second.fired, [True, True, False])
    # w_0 = 2 + 1 + 1;  w_1 = 5 - 1 + 1 + 1/2;  w_2 = 8 + (5-8)/3
    np.testing.assert_allclose(second.weights.ravel(), [4, 5.5, 7], rtol=1e-15)
    np.testing.assert_array_equal(second.last_broadcast.ravel(), [2, 5, 8])
    assert second.transmission_time == pytest.approx((1 + 1 + 1 / 4) / 3)


def test_central_and_local_by_hand():
    second = run(**HAND, policy="central")[1]
    # W(1) = 4 - (-2, -1, 0) = (6, 5, 4), mean 5, G = (6-4, 5-6, 4-8);  W(2) = 5 - G/2
    np.testing.assert_allclose(second.weights.ravel(), [4, 5.5, 7], rtol=1e-15)
    np.testing.assert_array_equal(second.last_broadcast.ravel(), [6, 5, 4])
    assert second.fired.all()
    assert not second.used_links.any()
    assert second.transmission_time == pytest.approx((1 + 1 + 1 / 4) / 3)
    second = run(**{**HAND, "r": 0.0}, policy="local")[1]
    # w - G/2 = (2 + 1, 5 + 1/2, 8)
    np.testing.assert_array_equal(second.weights.ravel(), [3, 5.5, 8])
    np.testing.assert_array_equal(second.last_broadcast.ravel(), [0, 4, 8])
    assert not second.fired.any()
    assert second.transmission_time == 0


# Event 1 -----------------------------------------------------------------------------------------

PAIR = [[0, 1, 0], [1, 0, 0], [0, 0, 0]]  # 0 - 1, and 2 alone
NONE = np.zeros((3, 3))


def test_new_link_is_used_once_and_leaves_the_last_broadcast_alone():
    history = run([0, 3, 9], [PAIR, PATH, PATH, PAIR, PATH])
    assert [links(history, k) for k in range(5)] == [[], [(1, 2)], [], [], [(1, 2)]]
    assert not any(step.fired.any() for step in history)
    # Degrees after 2 arrived are (1, 2, 1): beta_12 = 1/3 (before: 1 and 0, which would give 1/2).
    # w_1 = 3 + (9-3)/3 = 5;  w_2 = 9 - 2 = 7;  then again 5 + 2/3 and 7 - 2/3
    np.testing.assert_allclose(history[1].weights.ravel(), [0, 5, 7], rtol=1e-15)
    np.testing.assert_allclose(history[3].weights.ravel(), [0, 5, 7], rtol=1e-15)
    np.testing.assert_allclose(history[4].weights.ravel(), [0, 17 / 3, 19 / 3], rtol=1e-15)
    np.testing.assert_array_equal(history[4].last_broadcast.ravel(), [0, 3, 9])
    assert history[1].transmission_time == pytest.approx((1 / 2 + 1) / 3)


def test_links_that_appear_together_exchange_the_final_degrees():
    # beta = 1/3 on both: w_0 = 0 + 1, w_1 = 3 - 1 + 2, w_2 = 9 - 2
    step = run([0, 3, 9], [NONE, PATH])[1]
    np.testing.assert_allclose(step.weights.ravel(), [1, 4, 7], rtol=1e-15)


def test_new_link_of_a_device_that_fires_counts_once():
    step = run([0, 3, 9], [NONE, PATH], policy="zt")[1]
    np.testing.assert_allclose(step.weights.ravel(), [1, 4, 7], rtol=1e-15)
    assert step.transmission_time == pytest.approx(1.0)


def test_local_ignores_new_links():
    history = run([0, 3, 9], [NONE, PATH], policy="local", r=0.0)
    assert links(history, 1) == []
    np.testing.assert_array_equal(history[1].weights.ravel(), [0, 3, 9])


# Broadcast decision ------------------------------------------------------------------------------


def test_coins_below_one_over_m_fire_and_the_threshold_is_strict():
    coins = np.array([[0.49, 0.5], [0.5, 0.9]])
    pair = [[0, 1], [1, 0]]
    history = run([0, 2], [pair, pair], policy="rg", coins=coins)
    np.testing.assert_array_equal(history[0].fired, [True, False])
    assert not history[1].fired.any()
    np.testing.assert_array_equal(history[1].weights.ravel(), [1, 1])


def test_zero_r_broadcasts_always_even_alone():
    zero, always = (run(**{**HAND, "r": 0.0}, policy=name) for name in ("efhc", "zt"))
    for ours, theirs in zip(zero, always, strict=True):
        assert ours.fired.all()
        assert theirs.fired.all()
        np.testing.assert_array_equal(ours.weights, theirs.weights)
    alone = run([0, 3, 9], [NONE, NONE], targets=np.ones((2, 3), int), model=Pull(), r=0.0)[1]
    assert alone.fired.all()
    assert alone.transmission_time == 0
    np.testing.assert_array_equal(alone.last_broadcast.ravel(), [1, 1, 1])  # = W(1)


@pytest.mark.parametrize(("q", "expected"), [(1, 3.5), (2, 12.5**0.5), (np.inf, 4.0)])
def test_drift_is_normalised_by_the_dimension(q, expected):
    device = Device(0, np.zeros(2), 1.0, [])
    device.w = np.array([3.0, -4.0])
    assert device.drift(q) == pytest.approx(expected)
    device.w = np.array([-2.0, 2.0])
    assert device.drift(q) == pytest.approx(2.0)


# Models ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_gradient_matches_finite_differences(name):
    rng = np.random.default_rng(3)
    classes, features, step = 4, 5, 1e-6
    x, y = rng.normal(size=(6, features)), np.array([0, 1, 2, 3, 3, 1])
    w = rng.normal(size=classes * (features + (name != "quadratic")))
    model = MODELS[name](classes)
    numeric = [
        (model.loss(w + e, x, y) - model.loss(w - e, x, y)) / (2 * step) for e in step * np.eye(len(w))
    ]
    np.testing.assert_allclose(model.gradient(w, x, y), numeric, atol=1e-8)


def test_losses_by_hand():
    x, y = np.array([[2.0]]), np.array([1])
    linear = np.array([1, 0, 1, 1, 0, 0.5])  # rows (slope, bias): scores (2, 3, 0.5)
    # hinge: class 0 is on the kink (1 - 3 + 2 = 0), class 2 is beyond it
    assert MODELS["svm"](3).loss(linear, x, y) == 0
    assert not MODELS["svm"](3).gradient(linear, x, y).any()
    # all scores equal: two margins of 1 over 3 classes, and log 3
    assert MODELS["svm"](3).loss(np.zeros(6), x, y) == pytest.approx(2 / 3)
    third = MODELS["svm"](3).gradient(np.zeros(6), x, y)
    np.testing.assert_allclose(third, np.array([2, 1, -4, -2, 2, 1]) / 3)
    assert MODELS["logistic"](3).loss(np.zeros(6), x, y) == pytest.approx(np.log(3))
    assert MODELS["quadratic"](2).loss(np.array([9.0, 5.0]), x, y) == 4.5  # (5-2)^2 / 2


def test_pixels_are_normalised_and_the_batch_averaged():
    # Centroid 0 at alpha = 1: w - (w - mean x) = mean of two black and one white pixel.
    step = run(
        [[5.0, 7.0]],
        np.zeros((1, 1, 1)),
        model="quadratic",
        classes=2,
        samples=[[[0, 1, 0]]],
        images=np.array([0, 255], np.uint8).reshape(2, 1, 1),
        labels=[0, 0],
    )[0]
    np.testing.assert_allclose(step.weights, [[(1 / 3 - 0.1307) / 0.3081, 7.0]], rtol=1e-14)


# Whole runs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
def test_one_device_is_plain_sgd(policy):
    history = run(
        [3.0],
        np.zeros((3, 1, 1)),
        [[1], [2], [7]],
        policy=policy,
        model=Pull(),
        coins=np.zeros((3, 1)),
        bandwidth=[2.0],
    )
    # 3 - 2 = 1;  1 + 1/2 = 1.5;  1.5 + 5.5/3
    found = [step.weights.item() for step in history]
    np.testing.assert_allclose(found, [1, 1.5, 1.5 + 5.5 / 3], rtol=1e-15)
    assert history[0].transmission_time == (0.5 if policy == "central" else 0.0)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(FIRST_FOUR), st.integers(1, 6))
def test_mixing_is_the_transition_matrix_and_keeps_the_mean(seed, policy, m):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((5, m, m)) < 0.5, 1)
    adjacency = upper | upper.transpose(0, 2, 1)
    before = rng.normal(size=(m, 3))
    mean, previous, last = before.mean(axis=0), adjacency[0], before
    history = run(before, adjacency, policy=policy, coins=rng.random((5, m)), r=0.3)
    for k, step in enumerate(history):
        now = adjacency[k]
        fresh = now & ~previous
        expected = now & (step.fired[:, None] | step.fired[None, :] | fresh)
        np.testing.assert_array_equal(step.used_links, expected)
        matrix = transition_matrix(now, step.used_links)
        assert matrix.min() >= 0
        np.testing.assert_allclose(matrix.sum(axis=0), 1.0)
        np.testing.assert_allclose(step.weights, matrix @ before, atol=1e-14)
        np.testing.assert_allclose(step.weights.mean(axis=0), mean, atol=1e-14)
        last = np.where(step.fired[:, None], before, last)
        np.testing.assert_array_equal(step.last_broadcast, last)
        before, previous = step.weights, now


# Small functions ---------------------------------------------------------------------------------


def test_weights_and_time_on_a_path():
    third = 1 / 3
    np.testing.assert_allclose(metropolis_weights(PATH), third * np.array(PATH))
    np.testing.assert_allclose(metropolis_weights(PAIR), 0.5 * np.array(PAIR))
    matrix = [[1 - third, third, 0], [third, 1 - third, 0], [0, 0, 1]]
    np.testing.assert_allclose(transition_matrix(PATH, PAIR), matrix)
    # (1/1 * 6/2 + 1/2 * 6/3 + 0/1 * 6/6)/3, then device 2 without any link
    assert transmission_time(PAIR, PATH, [2, 3, 6], 6) == pytest.approx(4 / 3)
    assert transmission_time(PAIR, PAIR, [2, 3, 6], 6) == pytest.approx(5 / 3)


def test_bandwidths_keep_the_mean():
    np.testing.assert_allclose(bandwidths(10, 0.8), [1000] * 8 + [21000] * 2)
    np.testing.assert_allclose(bandwidths(10, 0.4), [1000] * 4 + [23000 / 3] * 6)
    np.testing.assert_allclose(bandwidths(10, 0.0), [5000] * 10)
    for heterogeneity, weak in [(0.33, 3), (0.37, 4)]:
        found = bandwidths(10, heterogeneity, 50.0, 10.0)
        assert np.sum(found == 10.0) == weak
        assert found.mean() == pytest.approx(50.0)
    with pytest.raises(ValueError, match="heterogeneity"):
        bandwidths(2, 0.9)


def test_wrong_inputs_are_named():
    for changes, word in [({"policy": "best"}, "policy"), ({"policy": "rg"}, "coins")]:
        with pytest.raises(ValueError, match=word):
            run([0, 3, 9], [PATH], **changes)
    with pytest.raises(ValueError, match="symmetric"):
        run([0, 3, 9], [np.triu(PATH)])
