"""The paper's assumptions: by hand, against the plain definitions, and against real gradients."""

import math
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import efhc_jax as efhc
from efhc_jax import theory
from efhc_jax.engine import mixing
from efhc_jax.errors import ExperimentError
from efhc_jax.models import make_model
from efhc_jax.models.properties import Properties
from efhc_jax.network import connectivity, links
from efhc_jax.theory import GradientBounds, PowerDecay

UNKNOWN = "cannot be known from a finite run"


def graph(devices, *links):
    adjacency = np.zeros((devices, devices), bool)
    for i, j in links:
        adjacency[i, j] = adjacency[j, i] = True
    return adjacency


PATH = graph(3, (0, 1), (1, 2))
LEFT, RIGHT, NOTHING = graph(3, (0, 1)), graph(3, (1, 2)), graph(3)


@st.composite
def graph_sequences(draw, most_devices=6):
    """Sparse random graphs, one an iteration, that stay as they are for a while."""
    devices, steps = draw(st.integers(1, most_devices)), draw(st.integers(1, 24))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    density, change = draw(st.floats(0, 0.6)), draw(st.sampled_from([0.2, 1.0]))
    sequence = np.zeros((steps, devices, devices), bool)
    for step in range(steps):
        upper = np.triu(rng.random((devices, devices)) < density, 1)
        keep = step and rng.random() >= change
        sequence[step] = sequence[step - 1] if keep else upper | upper.T
    return sequence


def naive_window(sequence):
    """The definition, over all windows of all lengths."""
    steps = len(sequence)
    for length in range(1, steps + 1):
        unions = [sequence[k : k + length].any(0) for k in range(steps - length + 1)]
        if all(nx.is_connected(nx.from_numpy_array(union)) for union in unions):
            return length
    return None


# Links in use


def test_used_links_by_hand():
    adjacency = np.stack([LEFT, LEFT, PATH, PATH])
    fired = np.array([[0, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 1]], bool)
    used = connectivity.used_links_of(fired, adjacency)
    np.testing.assert_array_equal(used, [NOTHING, LEFT, RIGHT, RIGHT])


@given(graph_sequences(), st.integers(0, 100))
def test_used_links_are_those_of_the_engine(sequence, seed):
    fired = np.random.default_rng(seed).random(sequence.shape[:2]) < 0.3
    previous = np.concatenate([sequence[:1], sequence[:-1]])
    expected = [
        np.asarray(links.used_links(*now)) for now in zip(sequence, previous, fired, strict=True)
    ]
    np.testing.assert_array_equal(connectivity.used_links_of(fired, sequence), expected)
    still = np.broadcast_to(sequence[0], sequence.shape)
    np.testing.assert_array_equal(
        connectivity.used_links_of(fired, sequence[0]), connectivity.used_links_of(fired, still)
    )


def test_an_exchange_that_is_not_returned_is_found():
    one_way = NOTHING.copy()
    one_way[0, 1] = True
    assert theory.simultaneous_exchange([PATH, LEFT]).verdict == "holds"
    found = theory.simultaneous_exchange([PATH, one_way])
    assert (found.verdict, found.value) == ("does not hold", 1)


# Transition weights


def test_weights_of_a_star_by_hand():
    star = graph(4, (0, 1), (0, 2), (0, 3))
    assert theory.transition_weights(star, [star]).value == pytest.approx(1 / 4)
    one_link = theory.transition_weights(star, [graph(4, (0, 1))] * 7)
    assert (one_link.verdict, one_link.value) == ("holds", pytest.approx(1 / 4))
    assert "1 distinct P in 7 iterations" in one_link.figure
    idle = theory.transition_weights(star, [graph(4)])
    assert (idle.verdict, idle.value) == ("holds", 1)


def test_smallest_weight_is_found_wherever_it_is():
    pair, complete = graph(4, (0, 1)), ~np.eye(4, dtype=bool)
    found = theory.transition_weights(np.stack([pair, complete, pair]), np.stack([pair, complete, pair]))
    assert found.value == pytest.approx(1 / 4)
    assert "2 distinct P in 3" in found.figure
    same_links = theory.transition_weights(np.stack([pair, complete, pair]), np.stack([pair] * 3))
    assert same_links.value == pytest.approx(1 / 4), "equal links in unequal graphs weigh differently"


@given(graph_sequences(), st.integers(0, 100))
def test_weights_are_those_of_the_engine(sequence, seed):
    fired = np.random.default_rng(seed).random(sequence.shape[:2]) < 0.3
    used = connectivity.used_links_of(fired, sequence)
    matrices = theory.transition_matrices(sequence, used)
    expected = np.array([mixing.transition_matrix(*now) for now in zip(sequence, used, strict=True)])
    np.testing.assert_allclose(matrices, expected, atol=1e-6)
    found = theory.transition_weights(sequence, used)
    in_use = used | np.eye(sequence.shape[1], dtype=bool)
    assert found.verdict == "holds"
    assert found.value == pytest.approx(expected[in_use].min(), abs=1e-6)
    assert found.value >= 1 / sequence.shape[1] - 1e-12


def test_weights_that_break_the_assumption_are_found():
    one_way = NOTHING.copy()
    one_way[0, 1] = True
    lopsided = theory.transition_weights(PATH, [one_way])
    assert (lopsided.verdict, "symmetric within 3e-01" in lopsided.figure) == ("does not hold", True)
    not_physical = theory.transition_weights(LEFT, [PATH])
    assert (not_physical.verdict, not_physical.value) == ("does not hold", 0)


# Convexity and gradients


def properties_of(name, image_shape=(3, 3), classes=4):
    return make_model(name, image_shape, classes).properties


def test_convexity_by_model():
    expected = {
        "svm": ("holds", "svm is convex and has a minimiser"),
        "logistic": ("holds", "logistic is convex; it has a minimiser only if its classes overlap"),
        "quadratic": ("holds", "quadratic is convex and has a minimiser"),
        "lenet5": ("does not hold", "lenet5 is a neural network"),
    }
    for name, words in expected.items():
        found = theory.convexity(name, properties_of(name, (28, 28)))
        assert (found.verdict, found.figure) == words


@pytest.mark.parametrize(
    ("stated", "verdict", "figure"),
    [
        (Properties(), UNKNOWN, "nothing is known about the model mine"),
        (Properties(convex=True), "holds", "mine is convex; it may have no minimiser"),
        (Properties(convex=True, has_minimiser=True), "holds", "mine is convex and has a minimiser"),
        (Properties(convex=False), "does not hold", "mine is not convex"),
        (Properties(convex=False, in_words="is a forest"), "does not hold", "mine is a forest"),
    ],
)
def test_convexity_is_what_the_model_states(stated, verdict, figure):
    found = theory.convexity("mine", stated)
    assert (found.verdict, found.figure) == (verdict, figure)


def gradients(model, rows, images, labels):
    """Of each row, on all images as one batch."""

    def loss(row):
        return model.loss(model.logits(row, images), labels).mean()

    return np.asarray(jax.vmap(jax.grad(loss))(rows))


@pytest.mark.parametrize("name", ["svm", "logistic"])
@pytest.mark.parametrize("classes", [2, 10])
@pytest.mark.parametrize("batch", [1, 3])
def test_no_gradient_exceeds_its_bound(name, classes, batch):
    rng = np.random.default_rng(classes + batch)
    model = make_model(name, (3, 3), classes)
    for scale in (0.0, 0.1, 3.0, 100.0):
        images = (rng.normal(size=(batch, 3, 3)) * rng.choice([0.1, 1, 10])).astype(np.float32)
        labels = jnp.asarray(rng.integers(0, classes, batch))
        rows = jnp.asarray(rng.normal(size=(60, model.size)) * scale, jnp.float32)
        found = gradients(model, rows, jnp.asarray(images), labels)
        bounds = theory.gradient_bounds(model.properties, images)
        assert np.linalg.norm(found, axis=1).max() <= bounds.two * (1 + 1e-5)
        assert np.abs(found).max() <= bounds.infinity * (1 + 1e-5)
        norms = np.linalg.norm(found, axis=1), np.abs(found).max(1)
        assert theory.bounded_gradients(*norms, bounds).verdict == "holds"


@pytest.mark.parametrize("name", ["svm", "logistic"])
def test_the_bounds_are_reached(name):
    """By models that are as wrong as can be about the longest image; so no smaller bound would do."""
    model = make_model(name, (3, 3), 4)
    images = np.random.default_rng(0).normal(size=(5, 3, 3)).astype(np.float32) * 2
    row = np.zeros((4, 10), np.float32)
    if name == "logistic":
        row[1, -1] = 100.0  # sure of class 1, and the label is 0
    found = np.stack(
        [
            gradients(model, jnp.asarray(row.reshape(1, -1)), jnp.asarray(image)[None], jnp.array([0]))[
                0
            ]
            for image in images
        ]
    )
    bounds = theory.gradient_bounds(model.properties, images)
    assert np.linalg.norm(found, axis=1).max() == pytest.approx(bounds.two, rel=1e-5)
    assert np.abs(found).max() == pytest.approx(bounds.infinity, rel=1e-5)


def test_bounds_by_hand():
    images = np.array([[[2.0, -2.0]], [[0.0, 1.0]]])  # with the bias: lengths 3 and √2
    svm, logistic = properties_of("svm"), properties_of("logistic")
    mine = Properties(score_gradient=GradientBounds(5.0, 0.5))
    assert theory.gradient_bounds(svm, images) == pytest.approx((3 * math.sqrt(3 / 4), 1.5))
    assert theory.gradient_bounds(logistic, images) == pytest.approx((3 * math.sqrt(2), 2.0))
    assert theory.gradient_bounds(mine, images) == (15.0, 1.0)
    small = theory.gradient_bounds(logistic, images / 100)
    assert small.infinity == 1.0, "the bias has input 1"
    assert theory.gradient_bounds(properties_of("lenet5", (28, 28)), images) is None
    assert theory.gradient_bounds(properties_of("quadratic"), images) is None
    assert theory.gradient_bounds(Properties(convex=True), images) is None


def test_bytes_are_normalised_as_the_models_see_them(monkeypatch):
    from efhc_jax.models.base import normalise

    images = np.random.default_rng(0).integers(0, 256, (50, 4, 4), np.uint8)
    monkeypatch.setattr("efhc_jax.theory.findings._BLOCK_ELEMENTS", 100)  # six images at a time
    for name in ("svm", "logistic"):
        stated = properties_of(name, (4, 4), 10)
        raw = theory.gradient_bounds(stated, images)
        seen = theory.gradient_bounds(stated, np.asarray(normalise(jnp.asarray(images))))
        assert raw == pytest.approx(seen, rel=1e-6)


def test_gradients_without_a_bound_stay_unknown():
    found = theory.bounded_gradients([[1.0, 7.0]], [[0.5, 0.25]], None)
    assert (found.verdict, found.value) == (UNKNOWN, [7.0, 0.5])
    assert "7" in found.figure


def test_gradients_of_other_images_are_refused():
    with pytest.raises(ExperimentError, match="two_norms: reach 4.*above 3"):
        theory.bounded_gradients([4.0], [0.5], GradientBounds(3.0, 1.0))
    with pytest.raises(ExperimentError, match="infinity_norms"):
        theory.bounded_gradients([2.0], [1.5], GradientBounds(3.0, 1.0))


# Step sizes


@pytest.mark.parametrize(
    ("decay", "verdicts"),
    [
        (0.0, (False, True, False)),
        (0.4, (True, True, False)),
        (0.5, (True, True, False)),
        (0.51, (True, True, True)),
        (1.0, (True, True, True)),
        (1.01, (True, False, True)),
        (2.0, (True, False, True)),
    ],
)
def test_step_size_conditions(decay, verdicts):
    found = theory.step_sizes(PowerDecay(exponent=decay))
    assert tuple(finding.verdict == "holds" for finding in found) == verdicts


def test_the_papers_own_step_size_is_outside_its_theorem():
    vanish, total, squares = theory.step_sizes(PowerDecay())
    assert squares.verdict == "does not hold"
    assert "paper's own" in squares.figure
    assert "outside its Theorem 1" in squares.figure
    assert squares.value == math.inf
    assert "paper's own" not in theory.step_sizes(PowerDecay(exponent=0.6))[2].figure


@pytest.mark.parametrize("decay", [0.3, 0.5, 0.75, 0.9, 1.0, 1.5, 3.0])
@pytest.mark.parametrize(("scale", "offset"), [(1.0, 1.0), (0.3, 7.5)])
def test_sums_agree_with_partial_sums(decay, scale, offset):
    """Where a sum is finite, the partial sum and the integral of the rest make it; else it grows on."""
    counts = 200_000
    alpha = scale / (offset + np.arange(counts)) ** decay
    for power, finding in zip(
        (1, 2), theory.step_sizes(PowerDecay(scale, offset, decay))[1:], strict=True
    ):
        terms, exponent = alpha**power, power * decay
        if math.isfinite(finding.value):
            rest = scale**power * (offset + counts - 0.5) ** (1 - exponent) / (exponent - 1)
            assert finding.value == pytest.approx(terms.sum() + rest, rel=1e-6)
        else:
            tenths = np.add.reduceat(terms, [0, counts // 1000, counts // 100, counts // 10])
            assert tenths[3] > 0.9 * tenths[2] > 0.8 * tenths[1], "each ten times as long, none smaller"


def test_step_sizes_must_be_positive():
    with pytest.raises(ExperimentError, match="above 0"):
        theory.step_sizes(PowerDecay(scale=0.0))


# Windows


def test_links_dealt_over_five_rounds_have_window_five():
    complete = [(i, j) for i in range(4) for j in range(i)]
    star = [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)]
    dealt = np.stack([graph(6, star[k % 5]) for k in range(43)])
    assert connectivity.connection_window(dealt) == 5
    found = theory.physical_connectivity(dealt)
    assert (found.verdict, found.value) == (UNKNOWN, 5)
    assert found.figure == "B1 = 5 over 43 iterations"
    redundant = np.stack([graph(4, complete[k % 6]) for k in range(60)])
    assert connectivity.connection_window(redundant) == naive_window(redundant) < 6


def test_windows_of_a_path_by_hand():
    assert connectivity.connection_window(PATH) == 1
    assert connectivity.connection_window(np.stack([PATH] * 4)) == 1
    assert connectivity.connection_window([LEFT, RIGHT]) == 2
    assert connectivity.connection_window([LEFT, LEFT, RIGHT]) == 3, "the window of the first two is not"
    assert connectivity.connection_window([PATH, LEFT, LEFT, LEFT]) == 4, "and neither of the last three"
    assert connectivity.connection_window([NOTHING, PATH, NOTHING]) == 2


def test_an_isolated_device_has_no_window():
    assert connectivity.connection_window(LEFT) is None
    assert connectivity.connection_window([LEFT, NOTHING, LEFT]) is None
    assert theory.physical_connectivity(LEFT)[1] == "does not hold"
    assert theory.physical_connectivity([LEFT, LEFT])[1::2] == (UNKNOWN, None)


def test_one_device_is_connected_with_itself():
    assert connectivity.connection_window([[False]]) == 1
    assert connectivity.connection_window(np.zeros((5, 1, 1), bool)) == 1


def test_a_static_graph_tells_of_all_time():
    found = theory.physical_connectivity(PATH)
    assert (found.verdict, found.value) == ("holds", 1)


@given(graph_sequences())
def test_windows_are_those_of_the_definition(sequence):
    assert connectivity.connection_window(sequence) == naive_window(sequence)


@given(graph_sequences(most_devices=3), st.integers(2, 9))
def test_windows_of_sparse_links_are_those_of_the_definition(sequence, spread):
    stretched = np.zeros((len(sequence) * spread, *sequence.shape[1:]), bool)
    stretched[::spread] = sequence
    assert connectivity.connection_window(stretched) == naive_window(stretched)


# Waits and the information flow


def test_waits_by_hand():
    fired = np.zeros((10, 5), bool)
    fired[:, 0] = True
    fired[[2, 4, 8], 1] = True  # waits 3, 2, 4, 2
    fired[[5, 6], 2] = True  # 6 from before the start
    fired[[0, 2], 3] = True  # 8 and not over; device 4 never
    np.testing.assert_array_equal(connectivity.broadcast_waits(fired), [1, 4, 6, 8, 11])
    found = theory.bounded_waits(fired)
    assert (found.verdict, found.value) == (UNKNOWN, [1, 4, 6, 8, 11])
    assert found.figure.startswith("B2 = 11 over 10 iterations")
    assert found.figure.endswith("never from 4")


@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_waits_are_the_least_window_with_a_broadcast(column):
    (wait,) = connectivity.broadcast_waits(np.array(column)[:, None])
    lengths = range(1, len(column) + 2)

    def enough(length):
        return all(any(column[k : k + length]) for k in range(len(column) - length + 1))

    assert wait == next(length for length in lengths if enough(length))


@pytest.mark.parametrize(
    ("window", "wait", "promised"),
    [(1, 1, 2), (1, 7, 8), (5, 1, 10), (5, 5, 10), (5, 6, 15), (5, 12, 20), (3, 9, 12)],
)
def test_promised_window_by_hand(window, wait, promised):
    assert connectivity.promised_window(window, wait) == promised
    level = promised // window - 2
    assert level * window < wait <= (level + 1) * window


def test_information_flow_by_hand():
    fired = np.array([[1, 0, 0], [0, 0, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]], bool)
    used = connectivity.used_links_of(fired, PATH)  # left, nothing, right, left, both, right
    assert connectivity.connection_window(used) == 3
    found = theory.information_flow(used, 1, int(connectivity.broadcast_waits(fired).max()))
    assert (found.verdict, found.value) == ("holds", 3)
    assert found.figure == "B = 3 over 6 iterations; the paper's (l+2)·B1 = 6"


def test_information_flow_that_breaks_the_promise_is_found():
    quiet = np.stack([PATH, NOTHING, NOTHING, NOTHING, PATH])
    assert theory.information_flow(quiet, 1, 2)[1::2] == ("does not hold", 4)
    assert theory.information_flow([NOTHING] * 5, 1, 2)[1::2] == ("does not hold", None)
    assert theory.information_flow([NOTHING] * 5, 1, 6)[1::2] == (UNKNOWN, None)
    assert theory.information_flow(quiet, None, 2)[1::2] == (UNKNOWN, 4)


@given(graph_sequences(), st.integers(0, 10_000), st.sampled_from([0.1, 0.3, 0.8]))
def test_the_flow_keeps_what_the_paper_promises(sequence, seed, share):
    fired = np.random.default_rng(seed).random(sequence.shape[:2]) < share
    used = connectivity.used_links_of(fired, sequence)
    physical = connectivity.connection_window(sequence)
    wait = int(connectivity.broadcast_waits(fired).max())
    assert theory.information_flow(used, physical, wait).verdict != "does not hold"
    if physical is not None and physical + wait - 1 <= len(sequence):
        assert connectivity.connection_window(used) <= physical + wait - 1


# Remarks


def test_equal_decays_keep_their_ratio():
    alpha = PowerDecay(0.5, 3.0, 0.7)
    assert theory.threshold_decay(alpha, alpha)[1::2] == ("holds", 1)
    assert theory.threshold_decay(alpha, alpha._replace(scale=2.0))[1::2] == ("holds", 4)


@pytest.mark.parametrize(
    ("change", "limit"),
    [({"exponent": 0.9}, 0.0), ({"exponent": 0.2}, math.inf), ({"offset": 1.0}, 1.0)],
)
def test_other_decays_do_not(change, limit):
    alpha = PowerDecay(0.5, 3.0, 0.7)
    found = theory.threshold_decay(alpha, alpha._replace(**change))
    assert (found.verdict, found.value) == ("does not hold", limit)
    gamma, late = alpha._replace(**change), 1e12
    ratio = gamma.scale / (gamma.offset + late) ** gamma.exponent
    ratio *= (alpha.offset + late) ** alpha.exponent / alpha.scale
    assert ratio == pytest.approx(limit, abs=0.01) or (limit == math.inf and ratio > 1e5)


def test_guideline_by_hand():
    bandwidth = [1000.0] * 4 + [23000 / 3] * 6  # the paper's SVM devices, mean 5000
    assert theory.guideline(bandwidth, 1, 0.01) == pytest.approx(50.0)
    assert theory.guideline(bandwidth, 3, 0.01, ratio=2.0) == pytest.approx(300.0)


@given(st.floats(-2, 3), st.floats(1e-3, 1e3))
def test_decay_fit_finds_a_power_law(exponent, scale):
    k = np.arange(0, 3001, 100)
    values = np.concatenate([[123.0], scale * k[1:] ** -exponent])
    values[1:12] = 7.0  # the first half does not count
    found = theory.decay_fit(k, values)
    assert found.exponent == pytest.approx(exponent, abs=1e-8)
    assert found.scale == pytest.approx(scale, rel=1e-6)
    assert (found.first, found.last) == (123.0, values[-1])


def test_decay_fit_leaves_out_what_has_no_logarithm():
    found = theory.decay_fit([0, 1, 2, 4, 8, 16], [1, 1, 1, 2.0, 0.0, 0.5])
    assert found.exponent == pytest.approx(1.0)
    assert math.isnan(theory.decay_fit([0, 10], [1.0, 0.5]).exponent)
    assert math.isnan(theory.decay_fit([0, 10, 20, 30], [1.0, 0, 0, 0]).exponent)
    with pytest.raises(ExperimentError, match="give equal shapes"):
        theory.decay_fit([1, 2], [1.0])


# A real run


def test_a_recorded_run_is_measured(tiny):
    settings = {"devices": 5, "iterations": 60, "eval_every": 60, "r": 300.0, "batch_size": 2}
    experiment = efhc.Experiment(graph="ring", labels_per_device=2, **settings)
    run = efhc.simulate(experiment, tiny, trace=True)
    fired, ring = run.fired.values, run.adjacency.values[0]
    assert 0 < fired.mean() < 1
    np.testing.assert_array_equal(connectivity.used_links_of(fired, ring), run.used_links.values)
    found = theory.transition_weights(ring, run.used_links.values)
    assert (found.verdict, found.value) == ("holds", pytest.approx(1 / 3))
    physical, wait = connectivity.connection_window(ring), int(connectivity.broadcast_waits(fired).max())
    assert theory.information_flow(run.used_links.values, physical, wait).verdict == "holds"
    # What a device that neither broadcast nor heard of one changed by is α·g.
    alone = ~run.used_links.values.any(2)
    steps = -np.diff(run.weights.values, axis=0)[alone]
    alpha = 1 / np.sqrt(1 + np.nonzero(alone)[0])
    gradients = steps / alpha[:, None]
    bounds = theory.gradient_bounds(properties_of("svm"), tiny.train_images)
    norms = np.linalg.norm(gradients, axis=1), np.abs(gradients).max(1)
    assert theory.bounded_gradients(*norms, bounds).verdict == "holds"


# The module


def test_a_long_run_is_measured_quickly():
    rng = np.random.default_rng(0)
    upper = np.triu(rng.random((12_000, 10, 10)) < 0.1, 1)
    adjacency = upper | upper.swapaxes(1, 2)
    fired = rng.random((12_000, 10)) < 0.1
    used = connectivity.used_links_of(fired, adjacency)
    for measure, limit in [
        (lambda: connectivity.connection_window(adjacency), 2.0),
        (lambda: connectivity.connection_window(used), 2.0),
        (lambda: theory.transition_weights(adjacency, used), 1.0),
        (lambda: connectivity.broadcast_waits(fired), 1.0),
    ]:
        start = time.process_time()
        measure()
        assert time.process_time() - start < limit


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: connectivity.connection_window(np.zeros((4, 3, 2))), r"graphs: has shape \(4, 3, 2\)"),
        (lambda: theory.transition_weights(PATH, PATH), r"used_links: .*give \(step, device, device\)$"),
        (lambda: theory.transition_weights(graph(4), [PATH]), "adjacency: .*1 steps and 3 devices"),
        (
            lambda: connectivity.used_links_of(np.zeros((5, 3)), [PATH]),
            "adjacency: .*5 steps and 3 devices",
        ),
        (lambda: connectivity.used_links_of(np.zeros(3), PATH), "fired: "),
        (lambda: connectivity.broadcast_waits(np.zeros(3)), "fired: "),
    ],
)
def test_wrong_shapes_are_named(call, message):
    with pytest.raises(ExperimentError, match=message):
        call()


def test_it_is_imported_without_jax():
    code = "import sys, efhc_jax.theory; assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
