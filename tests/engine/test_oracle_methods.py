"""The oracle of the methods against arithmetic done by hand."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from oracle import POLICIES, metropolis_weights, transition_matrix
from oracle_methods import (
    COMPRESSORS,
    METHODS,
    MIXED,
    Optimizer,
    Parameters,
    entries,
    simulate,
)

PAIR = [[0, 1], [1, 0]]
PATH = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]  # 0 - 1 - 2
FIRST = [[0, 1, 0], [1, 0, 0], [0, 0, 0]]  # 0 - 1, and 2 alone


class Pull:
    """0.5 ||w - y||^2 with the label as target of all entries: the gradient is w - y."""

    def loss(self, w, x, y):
        return float(np.sum(0.5 * (w - np.mean(y)) ** 2))

    def gradient(self, w, x, y):
        return w - np.mean(y)


class Slope:
    """Sum of w times the label: the gradient is the label wherever w is."""

    def loss(self, w, x, y):
        return float(np.sum(w) * np.mean(y))

    def gradient(self, w, x, y):
        return np.full_like(w, np.mean(y))


def run(weights, adjacency, targets=None, **changes):
    """Models (m,) or (m, n); targets (K * local_steps, m) become labels, one sample per device."""
    adjacency, weights = np.array(adjacency, dtype=bool), np.array(weights, float)
    steps, m, _ = adjacency.shape
    batches = steps * changes.get("local_steps", 1)
    targets = np.zeros((batches, m), int) if targets is None else np.array(targets)
    setting = {
        "weights": weights.reshape(m, -1),
        "adjacency": adjacency,
        "bandwidth": np.ones(m),
        "samples": np.arange(batches * m).reshape(batches, m, 1),
        "images": np.zeros((batches * m, 1, 1), np.uint8),
        "labels": targets.ravel(),
        "model": Slope(),
        "policy": "zt",
        "r": 1.0,
        "norm_order": 2,
        "learning_rate": (1.0, 1.0, 1.0),
    }
    return simulate(**{**setting, **changes})


def links(step):
    np.testing.assert_array_equal(step.used_links, step.used_links.T)
    return [tuple(link) for link in np.argwhere(np.triu(step.used_links)).tolist()]


def same(found, expected):
    np.testing.assert_allclose(np.ravel(found), np.ravel(expected), rtol=1e-13, atol=1e-13)


# Methods on the path, every link in use, P = [2 1 0; 1 1 1; 0 1 2]/3, alpha = 1, 1/2, 1/3 ------------
# W(0) = (0, 3, 9);  G = (3, 0, -3), (6, 3, 0), (0, 0, 3)
THREE = {
    "weights": [0, 3, 9],
    "adjacency": [PATH] * 3,
    "targets": [[3, 0, -3], [6, 3, 0], [0, 0, 3]],
    "bandwidth": np.array([1.0, 2.0, 4.0]),
}


def test_gossip_by_hand():
    first, second, _ = run(**THREE, method="gossip")
    # P W = (1, 4, 7), less G;  P (-2, 4, 10) = (0, 4, 8), less G/2
    same(first.weights, [-2, 4, 10])
    same(second.weights, [-3, 2.5, 8])
    same(second.memory["delta"], [-3, -1.5, 0])
    same(first.last_broadcast, [0, 3, 9])
    same(second.last_broadcast, [-2, 4, 10])
    # Loss w y at W(k): (0 + 0 - 27)/3, (-12 + 12 + 0)/3
    assert (first.train_loss, second.train_loss) == (-9, 0)
    # Two links, one number of 32 bits each way; everyone on all its links: (1 + 1/2 + 1/4)/3.
    assert (first.messages, first.bits) == (4, 128)
    assert first.transmission_time == pytest.approx(1.75 / 3)
    assert links(first) == [(0, 1), (1, 2)]


def test_tracking_by_hand():
    first, second, third = run(**THREE, method="tracking")
    # Y = G, unmixed;  W = P (-3, 3, 12)
    same(first.memory["Y"], [3, 0, -3])
    same(first.weights, [-1, 4, 9])
    # V = G(1) as Y(0) = G(0);  Y = P V;  W = P (-1 - 5/2, 4 - 3/2, 9 - 1/2)
    same(second.memory["Y"], [5, 3, 1])
    same(second.memory["G"], [6, 3, 0])
    same(second.weights, [-1.5, 2.5, 6.5])
    # V = (5 - 6, 3 - 3, 1 + 3);  W - Y/3 = (-23, 39, 101)/18
    same(third.memory["Y"], [-2 / 3, 1, 8 / 3])
    same(third.weights, np.array([-7, 117, 241]) / 54)
    # Two numbers in each message.
    assert (third.messages, third.bits) == (4, 256)
    assert third.transmission_time == pytest.approx(2 * 1.75 / 3)


def test_d2_by_hand():
    first, second, third = run(**THREE, method="d2")
    # U = (3, 0, -3);  W = P (-3, 3, 12)
    same(first.weights, [-1, 4, 9])
    # U = (3, 3/2, 0);  W = P (-2 - 0 - 3 + 3, 8 - 3 - 3/2 + 0, 18 - 9 - 0 - 3) = P (-2, 3.5, 6)
    same(second.weights, [-1 / 6, 2.5, 31 / 6])
    # U = (0, 0, 1);  W = P (-1/3 + 1 + 3, 5 - 4 + 3/2, 31/3 - 9 - 1) = P (11/3, 5/2, 1/3)
    same(third.weights, [59 / 18, 13 / 6, 19 / 18])
    same(third.memory["U"], [0, 0, 1])
    same(third.memory["W_before"], second.weights)
    assert (third.messages, third.bits) == (4, 128)


def test_extra_by_hand():
    graphs = [PATH, FIRST]
    first, second = run(
        **{**THREE, "adjacency": graphs, "targets": THREE["targets"][:2]}, method="extra"
    )
    same(first.weights, [-2, 4, 10])  # as gossip
    # P(1) = [1 1 0; 1 1 0; 0 0 2]/2: P W = (1, 1, 10), P W- = (3/2, 3/2, 9), -U + U- = (0, -3/2, -3)
    # (-2 + 1 - 3/4, 4 + 1 - 9/4 - 3/2, 10 + 10 - 9 - 3)
    same(second.weights, [-1.75, 1.25, 8])
    same(second.memory["U"], [3, 1.5, 0])
    same(second.memory["W_before"], [-2, 4, 10])
    assert (first.messages, first.bits, second.messages, second.bits) == (4, 128, 2, 64)


def test_quasi_global_momentum_by_hand():
    history = run(**THREE, method="qg_momentum", parameters={"beta": 0.5, "mu": 0.25})
    first, second, _ = history
    same(first.weights, [-1, 4, 9])
    same(first.memory["M"], [0.25, -0.25, 0])  # (W(0) - W(1))/4
    # W - (M/2 + G)/2 = (-1 - 3.0625, 4 - 1.4375, 9)
    same(second.weights, [(-8.125 + 2.5625) / 3, 2.5, (2.5625 + 18) / 3])
    # 3/4 M + 1/4 * 2 (W(1) - W(2))
    same(second.memory["M"], [0.1875 + (-3 + 5.5625) / 6, -0.1875 + 0.75, (27 - 20.5625) / 6])
    usual = run(**THREE, method="qg_momentum")
    named = run(**THREE, method="qg_momentum", parameters={"beta": 0.9, "mu": 0.1})
    same(usual[2].weights, named[2].weights)


def test_who_does_not_train_keeps_its_gradient_or_has_none():
    training = np.array([[False, True, True], [True, True, False]])
    two = {**THREE, "adjacency": [PATH] * 2, "targets": THREE["targets"][:2], "training": training}
    # G(0) = (0, 0, -3), G(1) = (6, 3, -3)
    first, second = run(**two, method="tracking")
    same(first.weights, [1, 5, 9])  # P (0, 3, 12)
    same(second.memory["G"], [6, 3, -3])
    same(second.memory["Y"], [5, 2, -1])
    same(second.weights, [(-3 + 4) / 3, (-1.5 + 4 + 9.5) / 3, (4 + 19) / 3])
    # P (2 - 0 - 3 + 0, 10 - 3 - 3/2, 18 - 9 + 3/2 - 3): U(1) of device 2 is -3 by the new alpha
    same(run(**two, method="d2")[1].weights, [(-2 + 5.5) / 3, 12 / 3, (5.5 + 15) / 3])
    # W(1) = (1, 4, 10), P W(1) = (2, 5, 8), P W(0) = (1, 4, 7), -U + U- = (-3, -3/2, 3/2 - 3)
    same(run(**two, method="extra")[1].weights, [1 + 2 - 0.5 - 3, 4 + 5 - 3.5 - 1.5, 18 - 8 - 1.5])
    # M = (W(0) - W(1))/10 = (-1, -2, 0)/10;  G(1) = (6, 3, 0)
    momentum = run(**two, method="qg_momentum", parameters={"beta": 0.5})
    moved = np.array([1 - (-0.05 + 6) / 2, 5 - (-0.1 + 3) / 2, 9])
    same(momentum[0].weights, [1, 5, 9])
    same(momentum[1].memory["G"], [6, 3, 0])
    same(momentum[1].weights, np.array([[2, 1, 0], [1, 1, 1], [0, 1, 2]]) / 3 @ moved)
    first, second = run(**two, method="gossip")
    same(first.weights, [1, 4, 10])
    same(second.weights, [2 - 3, 5 - 1.5, 8])
    assert first.train_loss == -9  # of all devices


def test_central_takes_the_mean_of_all():
    first, second, _ = run(**THREE, policy="central", method="gossip")
    same(first.weights, [4 - 3, 4, 4 + 3])
    same(second.weights, [4 - 3, 4 - 1.5, 4])
    same(second.last_broadcast, first.weights)
    assert second.fired.all()
    assert links(second) == []
    assert (second.messages, second.bits) == (3, 96)
    assert second.transmission_time == pytest.approx(1.75 / 3)
    first, second, _ = run(**THREE, policy="central", method="tracking")
    same(first.weights, [4, 4, 4])  # the mean of (-3, 3, 12)
    same(second.memory["Y"], [3, 3, 3])
    same(second.weights, [2.5, 2.5, 2.5])
    assert (second.messages, second.bits) == (3, 192)
    assert second.transmission_time == pytest.approx(2 * 1.75 / 3)


def test_a_link_that_does_not_take_part_is_not_used_and_still_counts():
    linking = np.ones((3, 3, 3), bool)
    linking[:, 1, 2] = linking[:, 2, 1] = [False, True, False]
    chosen = {"linking": linking, "bandwidth": [1.0, 1.0, 1.0]}
    first, _, _ = run([0, 3, 9], [PATH] * 3, method="gossip", **chosen)
    # beta stays 1/3 and the degree of device 1 two; device 2 fires to nobody.
    same(first.weights, [1, 2, 9])
    assert links(first) == [(0, 1)]
    assert first.fired.all()
    assert (first.messages, first.bits) == (2, 64)
    assert first.transmission_time == pytest.approx((1 + 1 / 2) / 3)
    # Who fired has broadcast, whoever heard it.
    same(run([0, 3, 9], [PATH] * 3, method="d2", **chosen)[1].last_broadcast, first.weights)
    # 1 - 2 appears in iteration 1 and takes part; then, in 2, it appears and does not.
    linking[:, 1, 2] = linking[:, 2, 1] = [True, True, True]
    never = {"method": "gossip", "policy": "efhc", "r": 1e9, "linking": linking}
    assert [links(step) for step in run([0, 3, 9], [FIRST, PATH, PATH], **never)] == [[], [(1, 2)], []]
    linking[:, 1, 2] = linking[:, 2, 1] = [True, False, True]
    missed = run([0, 3, 9], [FIRST, PATH, PATH], **never)
    assert [links(step) for step in missed] == [[], [], []]


@pytest.mark.parametrize("method", METHODS)
def test_local_sends_nothing(method):
    history = run([0, 3, 9], [FIRST, PATH], [[1, 1, 1], [1, 1, 1]], method=method, policy="local")
    for step in history:
        assert (step.messages, step.bits, step.transmission_time) == (0, 0, 0)
        assert links(step) == []
        assert not step.fired.any()
    same(history[0].weights, [-1, 2, 8])
    same(history[0].last_broadcast, [0, 0, 0] if method == "copies" else [0, 3, 9])


# Copies ------------------------------------------------------------------------------------------


def test_choco_by_hand():
    first, second = run(
        [[1, 4], [8, 2]],
        [PAIR] * 2,
        [[0, 0], [2, 0]],
        bandwidth=[1.0, 2.0],
        method="copies",
        parameters={"compressor": "top_k", "ratio": 0.5, "gamma": 0.5},
    )
    # C keeps one entry: X_hat = (0, 4), (8, 0);  beta = 1/2: W = X + 1/4 (8, -4), X + 1/4 (-8, 4)
    same(first.last_broadcast, [[0, 4], [8, 0]])
    same(first.weights, [[3, 3], [6, 3]])
    assert (first.messages, first.bits) == (2, 66)  # 32 bits of a value and one of its position
    assert first.transmission_time == pytest.approx((33 / 32 + 33 / 64) / 2)
    # X_half = (2, 2), (6, 3), off X_hat by (2, -2), a tie, and (-2, 3)
    same(second.last_broadcast, [[2, 2], [8, 3]])
    # + 1/4 (6, 1), - 1/4 (6, 1)
    same(second.weights, [[3.5, 2.25], [4.5, 2.75]])
    same(second.memory["delta"], [[-1, -1], [0, 0]])
    assert (second.messages, second.bits) == (2, 99)
    assert second.transmission_time == pytest.approx((66 / 32 + 33 / 64) / 2)


def test_copies_reach_new_links_whole():
    first, second, third = run(
        [6, 3, 9],
        [FIRST, PATH, PATH],
        method="copies",
        parameters={"compressor": "sign"},  # C(x) = x for one number, of 33 bits
        policy="rg",
        coins=np.array([[0.1, 0.9, 0.9], [0.9, 0.1, 0.9], [0.9, 0.9, 0.9]]),
        bandwidth=[1.0, 2.0, 4.0],
    )
    np.testing.assert_array_equal(first.fired, [True, False, False])
    same(first.last_broadcast, [6, 0, 0])  # nobody knows W(0) before it is sent
    # beta = 1/2: both are pulled by the copies, 6 and 0
    same(first.weights, [3, 6, 9])
    assert links(first) == [(0, 1)]
    assert (first.messages, first.bits) == (1, 33)
    assert first.transmission_time == pytest.approx(33 / 32 / 3)
    # 1 fires and 1 - 2 is new: C to 0, its copy whole to 2, which sends its own, 0, in return.
    np.testing.assert_array_equal(second.fired, [False, True, False])
    same(second.last_broadcast, [6, 6, 0])
    # beta = 1/3: 3 + 0, 6 + 0 - 6/3, 9 + 6/3
    same(second.weights, [3, 4, 11])
    assert links(second) == [(0, 1), (1, 2)]
    assert (second.messages, second.bits) == (3, 97)
    assert second.transmission_time == pytest.approx((65 / 2 / 32 / 2 + 1 / 4) / 3)
    # Silence, and all links pull all the same.
    same(third.weights, [3, 2, 13])
    assert (third.messages, third.bits, links(third)) == (0, 0, [])
    same(third.last_broadcast, [6, 6, 0])


def test_copies_fire_on_what_training_left():
    asked = {"targets": [[2, -3]], "method": "copies", "r": 2.0, "bandwidth": [1.0, 0.5]}
    # Thresholds 2 alpha / b = 2 and 4; X_half = (-2, 3), X_hat = 0
    step = run([0, 0], [PAIR], policy="efhc", **asked)[0]
    np.testing.assert_array_equal(step.fired, [True, False])
    same(step.last_broadcast, [-2, 0])
    same(step.weights, [-2 + 1, 3 - 1])
    # By the mean bandwidth, 3/4, it is 8/3 for both.
    step = run([0, 0], [PAIR], policy="gt", **asked)[0]
    np.testing.assert_array_equal(step.fired, [False, True])
    # By another schedule, 2 * 0.7 and 4 * 0.7; two entries deviate as far as one.
    step = run([[0, 0], [0, 0]], [PAIR], policy="efhc", threshold=lambda k: 0.7, **asked)[0]
    np.testing.assert_array_equal(step.fired, [True, True])
    step = run([[0, 0], [0, 0]], [PAIR], policy="efhc", threshold=lambda k: 1.1, **asked)[0]
    np.testing.assert_array_equal(step.fired, [False, False])


def test_copies_with_thresholds_that_adapt():
    # Shares 0.4 b / 2 = 0.2 and 0.6 of the iterations. A deviation of 1 makes the scale, which then
    # rises by 4^(0.8/0.8) = 4 and 4^(0.4/0.8) = 2, and sinks by 4^(-0.2/0.8) and 4^(-0.6/0.8):
    # 1 is below 4 and 2, 2 is below 2.83 and above 0.71.
    history = run(
        [0, 0],
        np.zeros((3, 2, 2)),
        [[1, 1]] * 3,
        method="copies",
        policy="adaptive",
        adaptive=(0.4, np.log(4) / 0.8),
        bandwidth=[1.0, 3.0],
        learning_rate=lambda k: 1.0,
    )
    np.testing.assert_array_equal([step.fired for step in history], [[1, 1], [0, 0], [0, 1]])
    same(history[2].last_broadcast, [-1, -3])


def test_words_of_an_iteration_reach_the_compressor():
    asked = []

    def words(k, positions):
        asked.append((k, positions.tolist()))
        # Iteration 0 keeps entry 1, iteration 1 entry 0.
        return np.array([5, 3] if k == 0 else [3, 5], np.uint32)

    chosen = {"method": "copies", "words": words}
    history = run(
        [[1, 2], [3, 4]], [PAIR] * 2, parameters={"compressor": "random_k", "ratio": 0.5}, **chosen
    )
    same(history[0].last_broadcast, [[0, 2], [0, 4]])
    same(history[1].last_broadcast, [[1, 2], [3, 4]])
    assert history[0].bits == 64
    assert asked == [(0, [0, 1])] * 2 + [(1, [0, 1])] * 2
    asked.clear()
    run([[1, 2], [3, 4]], [PAIR] * 2, parameters={"compressor": "qsgd", "levels": 4}, **chosen)
    assert asked == [(0, [0, 1]), (0, [2, 3]), (1, [0, 1]), (1, [2, 3])]


# Compressors -------------------------------------------------------------------------------------


def compressed(name, x, index=0, words=None, **parameters):
    return COMPRESSORS[name](np.array(x, float), index, Parameters(**parameters), words)


def test_none_sends_all():
    kept, bits = compressed("none", [3, -5, 0])
    same(kept, [3, -5, 0])
    assert bits == 96


def test_top_k_keeps_ties_and_no_zeros():
    x = [3, -5, 0, 5, 1]
    for ratio, kept, count in [(0.2, [0, -5, 0, 5, 0], 2), (0.6, [3, -5, 0, 5, 0], 3), (1, x, 4)]:
        found, bits = compressed("top_k", x, ratio=ratio)
        same(found, kept)
        assert bits == count * (32 + 3)
    found, bits = compressed("top_k", [0, 0], ratio=0.5)
    same(found, [0, 0])
    assert bits == 0
    assert compressed("top_k", [7], ratio=0.5)[1] == 32  # no position to name


def test_random_k_keeps_the_smallest_words():
    def words(positions):
        assert positions.tolist() == [0, 1, 2, 3]
        return np.array([2**32 - 1, 1, 2**31, 1], np.uint32)

    for ratio, kept in [(0.25, [0, 5, 0, 7]), (0.75, [0, 5, 0, 7]), (1, [4, 5, 0, 7])]:
        found, bits = compressed("random_k", [4, 5, 0, 7], index=3, words=words, ratio=ratio)
        same(found, kept)
        assert bits == 32 * (2 if ratio == 0.25 else 3 if ratio == 0.75 else 4)


def test_sign_has_the_mean_size():
    found, bits = compressed("sign", [3, -1, 0, 4])
    same(found, [2, -2, 0, 2])
    assert bits == 4 + 32


def test_qsgd_by_hand():
    def words(positions):
        assert positions.tolist() == [2, 3]
        return np.array([3 << 30, 1 << 31], np.uint32)  # u = 3/4, 1/2

    # 2 |x| / 5 + u = 1.2 + 0.75, 1.6 + 0.5: levels 1 and 2; beta = min(2/4, sqrt(2)/2) = 1/2
    found, bits = compressed("qsgd", [3, -4], index=1, words=words, levels=2)
    same(found, [5 / 2 / 1.5, -5 / 1.5])
    assert bits == 2 * 3 + 32
    found, bits = compressed("qsgd", [0, 0], words=words, levels=1)
    same(found, [0, 0])
    assert bits == 2 * 2 + 32
    # The largest u is 1 - 2^-24: not even 1e-9 more makes a level of it. beta = min(2, sqrt(2))
    found, _ = compressed("qsgd", [1e-9, 1], words=lambda p: np.full(2, 2**32 - 1, np.uint32), levels=1)
    same(found, [0, 1 / (1 + 2**0.5)])


def test_number_of_entries():
    assert [entries(ratio, 10) for ratio in (0.01, 0.1, 0.11, 0.3, 1.0)] == [1, 1, 2, 3, 10]
    assert entries(0.07, 100) == 7  # a product that is 7.000000000000001
    assert entries(0.001, 7850) == 8
    assert entries(0.5, 1) == 1


@pytest.mark.parametrize("name", COMPRESSORS)
def test_compressors_contract(name):
    rng = np.random.default_rng(5)
    n, draws = 12, 400
    x = rng.normal(size=n)
    beta = min(n / 9, n**0.5 / 3)
    errors = []
    for _ in range(draws):
        draw = rng.integers(0, 2**32, 12, dtype=np.uint32)
        kept, _ = compressed(name, x, words=lambda p, draw=draw: draw, ratio=0.25, levels=3)
        errors.append(np.sum((x - kept) ** 2))
    # (1 - omega) of ||x||^2 in the mean: k/n, ||x||_1^2 / (n ||x||_2^2), 1/(1 + beta)
    spread = np.sum(np.abs(x)) ** 2 / (n * np.sum(x**2))
    share = {"none": 1, "top_k": 3 / 12, "random_k": 3 / 12, "sign": spread, "qsgd": 1 / (1 + beta)}
    most = (1 - share[name]) * np.sum(x**2)
    assert np.mean(errors) <= most + 3 * np.std(errors) / draws**0.5 + 1e-12
    if name == "random_k":
        assert np.mean(errors) >= most - 3 * np.std(errors) / draws**0.5
    if name == "sign":
        assert np.mean(errors) == pytest.approx(most)


# Local training ----------------------------------------------------------------------------------


def directions(gradients, name, w=None, **parameters):
    optimizer = Optimizer(len(gradients[0]), name, **parameters)
    w = np.zeros(len(gradients[0])) if w is None else np.array(w, float)
    return [optimizer.direction(np.array(g, float), w) for g in gradients]


def test_optimizers_by_hand():
    gradients = [[1], [3], [0]]
    same(directions(gradients, "sgd"), [1, 3, 0])
    same(directions(gradients, "momentum", momentum=0.5), [1, 3.5, 1.75])
    same(directions(gradients, "nesterov", momentum=0.5), [1.5, 4.75, 0.875])
    same(directions(gradients, "momentum"), [1, 3.9, 3.51])
    # m = 1/2, 7/4; v = 1/2, 19/4, over 1 - 1/2 and 1 - 1/4
    found = directions(gradients[:2], "adam", b1=0.5, b2=0.5, eps=1.0)
    same(found, [1 / 2, (7 / 3) / (np.sqrt(19 / 3) + 1)])
    # m = 0.1, 0.39 over 0.1, 0.19;  v = 0.001, 0.009999 over 0.001, 0.001999
    found = directions(gradients[:2], "adam")
    expected = [1 / (1 + 1e-8), (0.39 / 0.19) / (np.sqrt(0.009999 / 0.001999) + 1e-8)]
    np.testing.assert_allclose(np.ravel(found), expected, rtol=1e-11)


@pytest.mark.parametrize("name", ["sgd", "momentum", "nesterov", "adam"])
def test_gradients_are_clipped_then_decayed(name):
    chosen = {} if name in ("sgd", "adam") else {"momentum": 0.5}
    found = directions([[3, 4], [0.3, 0.4]], name, w=[10, 0], weight_decay=0.1, clip=2.0, **chosen)
    # (1.2, 1.6) + (1, 0), then the short one as it is
    np.testing.assert_allclose(found, directions([[2.2, 1.6], [1.3, 0.4]], name, **chosen), rtol=1e-13)


def test_local_steps_by_hand():
    first, second = run(
        [0, 8],
        [PAIR] * 2,
        [[4, 8], [0, 4], [5, 4], [1, 0]],
        method="gossip",
        model=Pull(),
        local_steps=2,
        learning_rate=lambda k: 0.5 / (1 + k),
    )
    # 0, 2, 1 and 8, 8, 6;  the mean is 4
    same(first.memory["delta"], [1, -2])
    same(first.weights, [5, 2])
    assert first.train_loss == (8 + 0) / 2
    # alpha = 1/4 for both steps: 5, 5, 4 and 2, 2.5, 1.875;  the mean is 3.5
    same(second.memory["delta"], [-1, -0.125])
    same(second.weights, [2.5, 3.375])
    assert second.train_loss == (0 + 2) / 2
    assert (second.messages, second.bits) == (2, 64)


def test_local_steps_of_copies_by_hand():
    # X_half = (1, 6), all of it sent: the mean is 3.5, halfway with gamma = 1/2
    step = run(
        [0, 8],
        [PAIR],
        [[4, 8], [0, 4]],
        method="copies",
        parameters={"gamma": 0.5},
        model=Pull(),
        local_steps=2,
        learning_rate=lambda k: 0.5,
    )[0]
    same(step.last_broadcast, [1, 6])
    same(step.weights, [2.25, 4.75])
    assert (step.messages, step.bits) == (2, 64)


def test_momentum_lasts_over_iterations_and_pauses():
    chosen = {"learning_rate": lambda k: 1.0, "optimizer_parameters": {"momentum": 0.5}}
    alone = np.zeros((2, 1, 1))
    for method in ("gossip", "copies"):
        history = run(
            [0], alone, [[1]] * 4, method=method, optimizer="momentum", local_steps=2, **chosen
        )
        # v = 1, 3/2, 7/4, 15/8
        same([step.weights for step in history], [-2.5, -6.125])
        same(history[1].memory["velocity"], [1.875])
    history = run([0], alone, [[1]] * 4, method="gossip", optimizer="nesterov", local_steps=2, **chosen)
    same([step.weights for step in history], [-1.5 - 1.75, -1.5 - 1.75 - 1.875 - 1.9375])
    # Device 0 sits out iteration 1, device 1 iteration 0.
    training = np.array([[True, False], [False, True], [True, True]])
    history = run(
        [0, 0],
        np.zeros((3, 2, 2)),
        [[1, 9], [9, 1], [1, 1]],
        method="gossip",
        optimizer="momentum",
        training=training,
        **chosen,
    )
    same([step.weights for step in history], [[-1, 0], [-1, -1], [-2.5, -2.5]])


def test_adam_counts_the_steps_of_each_device():
    chosen = {"b1": 0.5, "b2": 0.5, "eps": 1.0}
    history = run(
        [0, 0],
        np.zeros((2, 2, 2)),
        [[1, 9], [3, 1]],
        method="gossip",
        optimizer="adam",
        optimizer_parameters=chosen,
        training=np.array([[True, False], [True, True]]),
        learning_rate=lambda k: 1.0,
    )
    second = (7 / 3) / (np.sqrt(19 / 3) + 1)
    same([step.weights for step in history], [[-0.5, 0], [-0.5 - second, -0.5]])
    same(history[1].memory["first"], [1.75, 0.5])
    same(history[1].memory["second"], [4.75, 0.5])


def test_weight_decay_follows_the_local_model():
    # 8 - 8/4 = 6, then 6 - 6/4: the decay is that of w^t
    step = run(
        [8],
        np.zeros((1, 1, 1)),
        [[0], [0]],
        method="gossip",
        local_steps=2,
        optimizer_parameters={"weight_decay": 0.25},
    )[0]
    same(step.weights, [4.5])


# Whole runs against products of matrices -----------------------------------------------------------


def random_run(seed, m, method, policy, **changes):
    """Everything varies: graph, who trains, which links take part. Returns the settings and the run."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((5, m, m)) < 0.6, 1)
    adjacency = upper | upper.transpose(0, 2, 1)
    part = np.triu(rng.random((5, m, m)) < 0.7, 1)
    setting = {
        "weights": rng.normal(size=(m, 3)),
        "targets": rng.integers(-3, 4, (5 * changes.get("local_steps", 1), m)),
        "bandwidth": rng.uniform(1, 3, m),
        "coins": rng.random((5, m)),
        "training": rng.random((5, m)) < 0.8,
        "linking": None if method == "copies" else part | part.transpose(0, 2, 1),
        "learning_rate": (0.3, 1.0, 0.5),
        "model": Pull(),
        "r": 2.0,
        **changes,
    }
    history = run(adjacency=adjacency, method=method, policy=policy, **setting)
    return {**setting, "adjacency": adjacency}, history


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(sorted(MIXED)),
    st.sampled_from(POLICIES),
    st.integers(1, 5),
)
def test_mixed_methods_are_products_with_the_transition_matrix(seed, method, policy, m):
    setting, history = random_run(seed, m, method, policy)
    w, adjacency = setting["weights"], setting["adjacency"]
    w_hat, previous, mean = w, adjacency[0], setting["bandwidth"].mean()
    before = u_before = gradient = y = momentum = np.zeros_like(w)
    for k, step in enumerate(history):
        alpha, now = 0.3 / (1 + k) ** 0.5, adjacency[k]
        if policy in ("efhc", "gt"):
            deviation = np.sqrt(np.mean((w - w_hat) ** 2, axis=1))
            rho = 1 / mean if policy == "gt" else 1 / setting["bandwidth"]
            np.testing.assert_array_equal(step.fired, deviation >= 2.0 * rho * alpha)
        new = now & ~previous & (policy != "local")
        used = now & (step.fired[:, None] | step.fired[None, :] | new) & setting["linking"][k]
        used &= policy != "central"
        p = np.full((m, m), 1 / m) if policy == "central" else transition_matrix(now, used)
        fresh = w - setting["targets"][k][:, None]
        trains = setting["training"][k][:, None]
        last = gradient
        gradient = np.where(trains, fresh, 0 if method in ("gossip", "qg_momentum") else last)
        u = alpha * gradient
        if method == "gossip":
            after = p @ w - u
        elif method == "tracking":
            y = gradient if k == 0 else p @ (y + gradient - last)
            after = p @ (w - alpha * y)
            same(step.memory["Y"], y)
            same(y.mean(axis=0), gradient.mean(axis=0))
            same(after.mean(axis=0), (w - alpha * gradient).mean(axis=0))
        elif method == "d2":
            after = p @ (w - u if k == 0 else 2 * w - before - u + u_before)
        elif method == "extra":
            after = p @ w - u if k == 0 else (np.eye(m) + p) @ (w - before / 2) - u + u_before
        else:
            after = p @ (w - alpha * (0.9 * momentum + gradient))
            momentum = 0.9 * momentum + 0.1 * (w - after) / alpha
        same(step.weights, after)
        w_hat = np.where(step.fired[:, None], w, w_hat)
        np.testing.assert_array_equal(step.used_links, used)
        same(step.last_broadcast, w_hat)
        size = 3 * (2 if method == "tracking" else 1)
        time = oracle.transmission_time(used, now, setting["bandwidth"], size)
        messages = used.sum()
        if policy == "central":
            messages, time = m, size * np.mean(1 / setting["bandwidth"])
        assert step.messages == messages
        assert step.bits == 32 * size * messages
        assert step.transmission_time == pytest.approx(time)
        before, w, u_before, previous = w, step.weights, u, now


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(POLICIES), st.integers(1, 5))
def test_gossip_is_the_algorithm_of_the_paper(seed, policy, m):
    setting, history = random_run(seed, m, "gossip", policy, linking=None, r=1.0, adaptive=(0.6, 2.0))
    steps, m = setting["training"].shape
    images = np.zeros((steps * m, 1, 1), np.uint8)
    theirs = oracle.simulate(
        **{name: value for name, value in setting.items() if name not in ("targets", "linking")},
        samples=np.arange(steps * m).reshape(steps, m, 1),
        images=images,
        labels=setting["targets"].ravel(),
        policy=policy,
        norm_order=2,
    )
    for one, other in zip(history, theirs, strict=True):
        np.testing.assert_array_equal(one.fired, other.fired)
        np.testing.assert_array_equal(one.used_links, other.used_links)
        same(one.weights, other.weights)
        same(one.last_broadcast, other.last_broadcast)
        assert one.transmission_time == pytest.approx(other.transmission_time)
        assert one.train_loss == pytest.approx(other.train_loss)


def words_of(seed):
    return lambda k, positions: np.random.default_rng([seed, k]).integers(
        0, 2**32, positions[-1] + 1, dtype=np.uint32
    )[positions]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(sorted(COMPRESSORS)),
    st.sampled_from([name for name in POLICIES if name != "central"]),
    st.integers(1, 5),
)
def test_copies_are_products_and_messages_add_up(seed, compressor, policy, m):
    parameters = {"compressor": compressor, "ratio": 0.4, "levels": 3, "gamma": 0.6}
    chosen = {
        "parameters": parameters,
        "local_steps": 2,
        "optimizer": "nesterov",
        "words": words_of(seed),
    }
    setting, history = random_run(seed, m, "copies", policy, **chosen)
    w, adjacency = setting["weights"], setting["adjacency"]
    copies, previous, drawn = np.zeros_like(w), adjacency[0], words_of(seed)
    for k, step in enumerate(history):
        now, half = adjacency[k], w + step.memory["delta"]
        assert not step.memory["delta"][~setting["training"][k]].any()
        if policy in ("efhc", "gt"):
            rho = 1 / setting["bandwidth"].mean() if policy == "gt" else 1 / setting["bandwidth"]
            deviation = np.sqrt(np.mean((half - copies) ** 2, axis=1))
            np.testing.assert_array_equal(step.fired, deviation >= 2.0 * rho * 0.3 / (1 + k) ** 0.5)
        each = [
            COMPRESSORS[compressor](half[i] - copies[i], i, Parameters(**parameters), partial(drawn, k))
            for i in range(m)
        ]
        copies = copies + step.fired[:, None] * np.array([message for message, _ in each])
        same(step.last_broadcast, copies)
        pull = metropolis_weights(now) @ copies - metropolis_weights(now).sum(1)[:, None] * copies
        same(step.weights, half + 0.6 * pull)
        same(step.weights.mean(axis=0), half.mean(axis=0))
        new = now & ~previous & (policy != "local")
        sent = new | (now & step.fired[:, None])
        bits = np.where(new, 96.0, np.array([size for _, size in each])[:, None]) * sent
        np.testing.assert_array_equal(step.used_links, sent | sent.T)
        assert step.messages == sent.sum()
        assert step.bits == bits.sum()
        degrees = np.maximum(now.sum(1), 1)
        time = np.mean(bits.sum(1) / degrees / (32 * setting["bandwidth"]))
        assert step.transmission_time == pytest.approx(time)
        w, previous = step.weights, now


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.sampled_from(["sgd", "momentum", "adam"]))
def test_copies_of_all_is_gossip_after_training(seed, m, optimizer):
    setting, history = random_run(seed, m, "copies", "zt", optimizer=optimizer, local_steps=2)
    w = setting["weights"]
    for k, step in enumerate(history):
        p = transition_matrix(setting["adjacency"][k], setting["adjacency"][k])
        same(step.weights, p @ (w + step.memory["delta"]))
        same(step.last_broadcast, w + step.memory["delta"])
        w = step.weights


ALLOWED = [
    (method, policy)
    for method in METHODS
    for policy in POLICIES
    if method in MIXED or policy != "central"
]


@pytest.mark.parametrize(("method", "policy"), ALLOWED)
def test_one_device_is_the_plain_optimizer(method, policy):
    alone = {"adjacency": np.zeros((3, 1, 1)), "coins": np.zeros((3, 1)), "bandwidth": [2.0]}
    targets, own = [[1], [2], [7]], {"beta": 0.0} if method == "qg_momentum" else {}
    history = run(
        [3], targets=targets, model=Pull(), method=method, policy=policy, parameters=own, **alone
    )
    # 3 - 2 = 1;  1 + 1/2 = 1.5;  1.5 + 5.5/3
    same([step.weights for step in history], [1, 1.5, 1.5 + 5.5 / 3])
    uploads = policy == "central"
    assert history[0].messages == uploads
    assert history[0].transmission_time == (uploads * (1.0 if method == "tracking" else 0.5))
    if method in ("gossip", "copies"):
        history = run(
            [3],
            targets=targets,
            model=Pull(),
            method=method,
            policy=policy,
            optimizer="momentum",
            optimizer_parameters={"momentum": 0.5},
            **alone,
        )
        # v = 2;  v = 2/2 + (1 - 2) = 0;  v = 0 + (1 - 7), a third of it
        same([step.weights for step in history], [1, 1, 3])


@pytest.mark.parametrize("method", METHODS)
def test_a_constant_step_reaches_the_optimum_or_not(method):
    targets = np.tile([0, 3, 9], (400, 1))
    last = run(
        [5, -5, 1], [PATH] * 400, targets, model=Pull(), method=method, learning_rate=lambda k: 0.2
    )[-1].weights.ravel()
    if method in ("tracking", "d2", "extra"):
        np.testing.assert_allclose(last, 4, atol=1e-8)
    else:
        assert last.mean() == pytest.approx(4)
        assert np.abs(last - 4).max() > 0.1


def test_sparse_copies_agree_and_keep_the_mean():
    rng = np.random.default_rng(2)
    w = rng.normal(size=(3, 10))
    parameters = {"compressor": "top_k", "ratio": 0.2, "gamma": 0.3}
    last = run(w, [PATH] * 300, method="copies", parameters=parameters)[-1].weights
    np.testing.assert_allclose(last, np.tile(w.mean(axis=0), (3, 1)), atol=1e-6)


# Small functions ---------------------------------------------------------------------------------


def test_wrong_inputs_are_named():
    for changes, word in [
        ({"method": "best"}, "method"),
        ({"method": "gossip", "policy": "best"}, "policy"),
        ({"method": "gossip", "policy": "rg"}, "coins"),
        ({"method": "gossip", "optimizer": "best"}, "optimizer"),
        ({"method": "gossip", "local_steps": 0}, "local_steps"),
        ({"method": "d2", "optimizer": "adam"}, "optimizer"),
        ({"method": "d2", "optimizer_parameters": {"clip": 1.0}}, "optimizer"),
        ({"method": "tracking", "local_steps": 2}, "local_steps"),
        ({"method": "copies", "policy": "central"}, "central"),
        ({"method": "copies", "linking": np.ones((1, 3, 3))}, "linking"),
        ({"method": "gossip", "linking": [np.triu(np.ones((3, 3)))]}, "symmetric"),
        ({"method": "copies", "parameters": {"compressor": "zip"}}, "compressor"),
        ({"method": "copies", "parameters": {"compressor": "top_k"}}, "ratio"),
        ({"method": "copies", "parameters": {"compressor": "qsgd", "levels": 2}}, "words"),
    ]:
        with pytest.raises(ValueError, match=word):
            run([0, 3, 9], [PATH], **changes)
