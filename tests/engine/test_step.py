"""One iteration against the oracle: every policy, several norms, graphs that stay and that change."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from efhc_jax.engine.deviation import normalised_distance
from efhc_jax.engine.mixing import metropolis_weights
from efhc_jax.engine.step import Inputs, Rules, rates_at, start, step
from efhc_jax.engine.values import RunValues
from efhc_jax.members import make_parameters
from efhc_jax.members.tracing import as_arrays
from efhc_jax.models import make_model
from efhc_jax.models.base import Model
from efhc_jax.network.dynamics.base import Snapshot
from efhc_jax.policies import POLICIES
from efhc_jax.schedules import SCHEDULES, Power
from efhc_jax.schedules.base import ScheduleValues, timed

DEVICES, ITERATIONS, BATCH = 5, 12, 2
LEARNING_RATE = (0.5, 2.0, 0.6)


@functools.cache
def compiled(model, norm_order):
    rules = rules_of(make_model(model, (3, 3), 4), norm_order)
    return rules, jax.jit(functools.partial(step, rules))


def rules_of(model, norm_order):
    return Rules(model, tuple(POLICIES.values()), norm_order, timed(SCHEDULES["power"], 12))


def values_of(policy, r, bandwidth):
    scale, offset, exponent = LEARNING_RATE
    power = as_arrays(SCHEDULES["power"], Power(offset, exponent))
    return RunValues(
        key=None,
        policy=jnp.asarray(list(POLICIES).index(policy)),
        policies=tuple(as_arrays(one, make_parameters(one, {})) for one in POLICIES.values()),
        r=jnp.asarray(r),
        learning_rate=ScheduleValues(jnp.asarray(scale), power),
        threshold=None,
        budgets=(jnp.zeros(0), jnp.zeros(0)),
        bandwidth=jnp.asarray(bandwidth),
        network=None,
        dynamics=None,
        shards=None,
    )


def changing_graph(rng):
    """Links that come and go, with a device that is alone for a while."""
    upper = np.triu(rng.random((ITERATIONS, DEVICES, DEVICES)) < 0.4, 1)
    upper[3:6, 0, :] = False
    return upper | upper.transpose(0, 2, 1)


def fixed_graph(rng):
    upper = np.triu(rng.random((DEVICES, DEVICES)) < 0.6, 1)
    return np.broadcast_to(upper | upper.T, (ITERATIONS, DEVICES, DEVICES))


def random_case(data, graphs, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "adjacency": jnp.asarray(graphs(rng)),
        "bandwidth": rng.choice([1000.0, 7000.0], DEVICES),
        "samples": rng.integers(0, len(data.train_labels), (ITERATIONS, DEVICES, BATCH)),
        "coins": rng.random((ITERATIONS, DEVICES)),
    }


def network_of(adjacency):
    return Snapshot(adjacency, None, jnp.ones(len(adjacency), bool))


def inputs_of(rules, values, k, network, images, labels, coin):
    return Inputs(
        iteration=jnp.asarray(k),
        network=network,
        link_weights=metropolis_weights(network.links),
        images=images,
        labels=labels,
        coin=coin,
        rates=rates_at(rules, values, jnp.asarray(k)),
    )


def run_engine(data, case, weights, model, policy, r, norm_order):
    rules, one_step = compiled(model, norm_order)
    values = values_of(policy, r, case["bandwidth"])
    state, history = (
        start(
            rules,
            values,
            jnp.asarray(weights),
            network_of(case["adjacency"][0]),
            jnp.asarray(case["coins"][0]),
        ),
        [],
    )
    for k in range(ITERATIONS):
        sample = case["samples"][k]
        inputs = inputs_of(
            rules,
            values,
            k,
            network_of(case["adjacency"][k]),
            data.train_images[sample],
            data.train_labels[sample],
            case["coins"][k],
        )
        state, info = one_step(values, state, inputs)
        history.append((state, info))
    return history


@pytest.mark.parametrize("graphs", [fixed_graph, changing_graph])
@pytest.mark.parametrize("norm_order", [2.0, np.inf])
@pytest.mark.parametrize("policy", POLICIES)
def test_every_iteration_agrees_with_the_oracle(x64, tiny, policy, norm_order, graphs):
    check_against_oracle(tiny, "svm", policy, norm_order, graphs)


@pytest.mark.parametrize("norm_order", [1.0, 3.5])
def test_other_norms_agree_with_the_oracle(x64, tiny, norm_order):
    check_against_oracle(tiny, "svm", "efhc", norm_order, changing_graph)


@pytest.mark.parametrize("model", ["logistic", "quadratic"])
def test_other_models_agree_with_the_oracle(x64, tiny, model):
    check_against_oracle(tiny, model, "efhc", 2.0, changing_graph)


def check_against_oracle(data, model, policy, norm_order, graphs):
    case = random_case(data, graphs)
    size = compiled(model, norm_order)[0].model.size
    weights = np.random.default_rng(1).normal(size=(DEVICES, size)) * 0.3
    r = 4000.0  # some devices fire and some do not
    ours = run_engine(data, case, weights, model, policy, r, norm_order)
    truth = oracle.simulate(
        weights=weights,
        images=data.train_images,
        labels=data.train_labels,
        model=model,
        policy=policy,
        r=r,
        norm_order=norm_order,
        learning_rate=LEARNING_RATE,
        classes=4,
        **case,
    )
    for (state, info), expected in zip(ours, truth, strict=True):
        np.testing.assert_array_equal(info.fired, expected.fired)
        np.testing.assert_array_equal(info.used_links, expected.used_links)
        np.testing.assert_allclose(state.weights, expected.weights, atol=1e-12)
        np.testing.assert_allclose(state.last_broadcast, expected.last_broadcast, atol=1e-12)
        np.testing.assert_allclose(info.transmission_time, expected.transmission_time, rtol=1e-12)
        np.testing.assert_allclose(info.train_loss, expected.train_loss, rtol=1e-12)
    if policy in ("efhc", "gt", "adaptive"):
        share = np.mean([info.fired for _, info in ours])
        assert 0.1 < share < 0.9, "a case in which all or none fire would not test the trigger"


def test_threshold_of_zero_is_zt_and_of_infinity_is_local(x64, tiny):
    case = random_case(tiny, fixed_graph)
    weights = np.random.default_rng(1).normal(size=(DEVICES, 40))
    run = functools.partial(run_engine, tiny, case, weights, "svm", norm_order=2.0)
    for r, same_as in [(0.0, "zt"), (np.inf, "local")]:
        for (ours, _), (theirs, _) in zip(run("efhc", r), run(same_as, 1.0), strict=True):
            np.testing.assert_array_equal(ours.weights, theirs.weights)


def test_one_device_is_plain_sgd(x64, tiny):
    model: Model = make_model("logistic", (3, 3), 4)
    rules = rules_of(model, 2.0)
    alone = jnp.zeros((1, 1), bool)
    values = values_of("efhc", 50.0, [5000.0])
    row = np.random.default_rng(0).normal(size=model.size)
    state = start(rules, values, jnp.asarray(row)[None], network_of(alone), jnp.zeros(1))
    truth = oracle.MODELS["logistic"](4)
    for k in range(5):
        image, label = jnp.asarray(tiny.train_images[k]), jnp.asarray(tiny.train_labels[k])
        network = network_of(alone)
        inputs = inputs_of(rules, values, k, network, image[None, None], label[None, None], jnp.zeros(1))
        state, info = step(rules, values, state, inputs)
        a, b, c = LEARNING_RATE
        pixels = oracle.normalise(image.reshape(1, -1))
        row = row - a / (b + k) ** c * truth.gradient(row, pixels, label[None])
        np.testing.assert_allclose(state.weights[0], row, atol=1e-12)
        assert info.transmission_time == 0


@pytest.mark.parametrize("policy", ["efhc", "gt", "zt", "rg"])
def test_relabelling_devices_relabels_the_result(x64, tiny, policy):
    case = random_case(tiny, changing_graph)
    weights = np.random.default_rng(1).normal(size=(DEVICES, 40))
    order = np.array([3, 0, 4, 2, 1])
    relabelled = {
        "adjacency": case["adjacency"][:, order][:, :, order],
        "bandwidth": case["bandwidth"][order],
        "samples": case["samples"][:, order],
        "coins": case["coins"][:, order],
    }
    plain = run_engine(tiny, case, weights, "svm", policy, 4000.0, 2.0)
    moved = run_engine(tiny, relabelled, weights[order], "svm", policy, 4000.0, 2.0)
    for (state, info), (other_state, other_info) in zip(plain, moved, strict=True):
        np.testing.assert_array_equal(info.fired[order], other_info.fired)
        np.testing.assert_allclose(state.weights[order], other_state.weights, atol=1e-12)


@given(
    order=st.sampled_from([1.0, 1.5, 2.0, 7.0, 40.0, np.inf]),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
    seed=st.integers(0, 100),
)
def test_distance_is_the_normalised_norm_even_in_32_bits(order, scale, seed):
    rng = np.random.default_rng(seed)
    ours, reference = (rng.normal(size=(3, 50)).astype(np.float32) * scale for _ in range(2))
    exact = np.linalg.norm((ours - reference).astype(float), ord=order, axis=1)
    exact *= 50 ** (-1 / order)
    distance = normalised_distance(jnp.asarray(ours), jnp.asarray(reference), order)
    np.testing.assert_allclose(distance, exact, rtol=1e-5)


def test_distance_of_equal_rows_is_zero():
    rows = jnp.ones((2, 4))
    for order in (1.0, 2.0, 3.0, np.inf):
        assert normalised_distance(rows, rows, order).tolist() == [0, 0]
