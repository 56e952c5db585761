"""Methods, compressors, optimizers and participation in the step, against the oracle in loops."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import oracle_methods
from efhc_jax.engine.mixing import metropolis_weights
from efhc_jax.engine.step import Inputs, Rules, rates_at, start, step
from efhc_jax.engine.values import RunValues
from efhc_jax.members import make_parameters
from efhc_jax.members.tracing import as_arrays
from efhc_jax.methods import METHODS
from efhc_jax.models import make_model
from efhc_jax.network.dynamics.base import Snapshot
from efhc_jax.optimizers import OPTIMIZERS
from efhc_jax.policies import POLICIES
from efhc_jax.randomness.draws import random_words, run_key
from efhc_jax.randomness.streams import Stream
from efhc_jax.schedules import SCHEDULES, Power
from efhc_jax.schedules.base import ScheduleValues, timed

DEVICES, ITERATIONS, BATCH = 5, 12, 2
LEARNING_RATE = (0.3, 2.0, 0.6)
MIXED = ["gossip", "tracking", "d2", "extra", "qg_momentum"]
COMPRESSED = [
    {},
    {"compressor": "top_k", "ratio": 0.1, "gamma": 0.4},
    {"compressor": "random_k", "ratio": 0.3, "gamma": 0.4},
    {"compressor": "sign", "gamma": 0.2},
    {"compressor": "qsgd", "levels": 4, "gamma": 0.3},
]


def rules_of(method, optimizer=None, local_steps=1):
    return Rules(
        make_model("svm", (3, 3), 4),
        tuple(POLICIES.values()),
        2.0,
        timed(SCHEDULES["power"], ITERATIONS),
        method=METHODS[method],
        optimizer=None if optimizer is None else OPTIMIZERS[optimizer],
        local_steps=local_steps,
    )


def parameters_of(registry, name, given):
    return as_arrays(registry[name], make_parameters(registry[name], given))


@functools.cache
def compiled(rules):
    """All iterations of a run, from its values and the inputs of each iteration."""

    def run(values, weights, case):
        network = Snapshot(case["adjacency"][0], None, jnp.ones(DEVICES, bool))
        state = start(rules, values, weights, network, case["coins"][0])

        def one(state, given):
            k, adjacency, images, labels, coin, training, takes_part, open_links = given
            state, info = step(
                rules,
                values,
                state,
                Inputs(
                    iteration=k,
                    network=Snapshot(adjacency, None, training),
                    link_weights=metropolis_weights(adjacency),
                    images=images,
                    labels=labels,
                    coin=coin,
                    rates=rates_at(rules, values, k),
                    takes_part=takes_part,
                    open_links=open_links,
                ),
            )
            return state, (state, info)

        names = ["adjacency", "images", "labels", "coins", "training", "takes_part", "open_links"]
        given = (jnp.arange(ITERATIONS), *(case[name] for name in names))
        return jax.lax.scan(one, state, given)[1]

    return jax.jit(run)


def random_case(data, *, steps=1, changing=True, closing=True, seed=0):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((ITERATIONS, DEVICES, DEVICES)) < 0.5, 1)
    if not changing:
        upper[:] = upper[0]
    closed = np.triu(rng.random(upper.shape) < 0.3, 1)
    samples = rng.integers(0, len(data.train_labels), (ITERATIONS * steps, DEVICES, BATCH))
    by_step = samples.reshape(ITERATIONS, steps, DEVICES, BATCH) if steps > 1 else samples
    return {
        "adjacency": upper | upper.transpose(0, 2, 1),
        "bandwidth": rng.choice([1000.0, 7000.0], DEVICES),
        "samples": samples,
        "images": data.train_images[by_step],
        "labels": data.train_labels[by_step],
        "coins": rng.random((ITERATIONS, DEVICES)),
        "training": rng.random((ITERATIONS, DEVICES)) < 0.8,
        "takes_part": rng.random((ITERATIONS, DEVICES)) < 0.8,
        "open_links": ~(closed | closed.transpose(0, 2, 1)) if closing else np.ones(upper.shape, bool),
    }


def check(
    data, case, method, given=None, *, policy="efhc", optimizer=None, optimized=None, steps=1, r=900.0
):
    """Every iteration of the engine against the oracle's."""
    given, optimized, key = given or {}, optimized or {}, run_key(7)
    rules = rules_of(method, optimizer, steps)
    scale, offset, exponent = LEARNING_RATE
    power = as_arrays(SCHEDULES["power"], Power(offset, exponent))
    values = RunValues(
        key=key,
        policy=jnp.asarray(list(POLICIES).index(policy)),
        policies=tuple(parameters_of(POLICIES, name, {}) for name in POLICIES),
        r=jnp.asarray(r),
        learning_rate=ScheduleValues(jnp.asarray(scale), power),
        threshold=None,
        budgets=(jnp.zeros(0), jnp.zeros(0)),
        bandwidth=jnp.asarray(case["bandwidth"]),
        network=None,
        dynamics=None,
        shards=None,
        method=parameters_of(METHODS, method, given),
        optimizer=None if optimizer is None else parameters_of(OPTIMIZERS, optimizer, optimized),
    )
    rng = np.random.default_rng(1)
    weights = rng.normal(size=(DEVICES, *rules.model.init(key).shape))
    arrays = {name: jnp.asarray(array) for name, array in case.items() if name != "samples"}
    states, infos = compiled(rules)(values, jnp.asarray(weights), arrays)
    copies = METHODS[method].keeps_copies
    wanted = oracle_methods.simulate(
        weights=weights.reshape(DEVICES, -1),
        adjacency=case["adjacency"],
        bandwidth=case["bandwidth"],
        samples=case["samples"],
        images=data.train_images,
        labels=data.train_labels,
        model="svm",
        policy="zt" if METHODS[method].always_sends else policy,
        r=r,
        norm_order=2.0,
        learning_rate=LEARNING_RATE,
        method="copies" if copies else method,
        parameters=given,
        optimizer=optimizer or "sgd",
        optimizer_parameters=optimized,
        local_steps=steps,
        coins=case["coins"],
        classes=4,
        training=case["training"] & case["takes_part"],
        linking=None if copies else case["open_links"],
        words=lambda k, places: np.asarray(
            random_words(key, Stream.COMPRESSION, k, jnp.asarray(places))
        ),
    )
    for k, one in enumerate(wanted):
        at = functools.partial(jax.tree.map, lambda leaf, k=k: np.asarray(leaf[k]))
        state, info = at(states), at(infos)
        np.testing.assert_array_equal(info.fired, one.fired, f"iteration {k}")
        np.testing.assert_array_equal(info.used_links, one.used_links, f"iteration {k}")
        near = functools.partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)
        near(state.weights.reshape(DEVICES, -1), one.weights, err_msg=f"iteration {k}")
        near(state.last_broadcast.reshape(DEVICES, -1), one.last_broadcast)
        assert info.messages == one.messages
        near(info.bits, one.bits)
        near(info.transmission_time, one.transmission_time)
        near(info.train_loss, one.train_loss)
    return states, infos, wanted


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("method", MIXED)
def test_methods_agree_with_the_oracle_under_every_policy(x64, tiny, method, policy):
    _, infos, _ = check(tiny, random_case(tiny), method, policy=policy)
    if policy == "efhc":
        assert 0.1 < float(infos.fired.mean()) < 0.9


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "central"])
def test_copies_agree_with_the_oracle_under_every_policy(x64, tiny, policy):
    check(tiny, random_case(tiny, closing=False), "copies", policy=policy, r=3000.0)


@pytest.mark.parametrize("given", COMPRESSED, ids=lambda given: given.get("compressor", "none"))
def test_compressed_copies_agree_with_the_oracle(x64, tiny, given):
    case = random_case(tiny, closing=False)
    sparse = given.get("compressor") in ("top_k", "random_k")
    _, infos, _ = check(tiny, case, "copies", given, r=12_000.0 if sparse else 3000.0)
    assert 0.1 < float(infos.fired.mean()) < 0.9
    assert float(infos.new_links.sum()) > 0, "copies are sent whole over new links"


@pytest.mark.parametrize("policy", ["local", "central", "efhc"])
def test_choco_sends_whatever_the_policy(x64, tiny, policy):
    given = {"compressor": "top_k", "ratio": 0.1, "gamma": 0.3}
    _, infos, _ = check(tiny, random_case(tiny, closing=False), "choco", given, policy=policy)
    assert infos.fired.all()


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize(
    ("optimizer", "optimized"),
    [
        ("sgd", {"weight_decay": 0.1, "clip": 0.7}),
        ("momentum", {"momentum": 0.8, "weight_decay": 0.05}),
        ("nesterov", {"momentum": 0.6, "clip": 1.0}),
        ("adam", {"b1": 0.8, "b2": 0.9, "eps": 1e-3}),
    ],
)
def test_local_training_agrees_with_the_oracle(x64, tiny, optimizer, optimized, steps):
    case = random_case(tiny, steps=steps)
    check(tiny, case, "gossip", optimizer=optimizer, optimized=optimized, steps=steps)


def test_several_plain_steps_agree_with_the_oracle(x64, tiny):
    check(tiny, random_case(tiny, steps=3), "gossip", steps=3)


def test_squarm_agrees_with_the_oracle(x64, tiny):
    """Copies with compression, a trigger, local steps and momentum together."""
    given = {"compressor": "top_k", "ratio": 0.2, "gamma": 0.4}
    case = random_case(tiny, steps=3, closing=False)
    check(tiny, case, "sparq", given, optimizer="nesterov", steps=3, r=4000.0)


def test_copies_without_compression_are_adapt_then_combine(x64, tiny):
    """With γ = 1 and everybody firing, W(k+1) = P·(W(k) + Δ(k))."""
    case = random_case(tiny, changing=False, closing=False)
    states, infos, _ = check(tiny, case, "copies", policy="zt")
    adjacency = case["adjacency"][0]
    shares = np.asarray(metropolis_weights(adjacency))
    transition = shares + np.diag(1 - shares.sum(1))
    trained = np.asarray(states.last_broadcast)  # everybody has just sent its model
    mixed = np.einsum("ij,kj...->ki...", transition, trained)
    np.testing.assert_allclose(states.weights, mixed, rtol=1e-12, atol=1e-12)


def test_tracking_keeps_the_mean_of_the_gradients(x64, tiny):
    states, _, _ = check(tiny, random_case(tiny), "tracking")
    memory = states.method
    np.testing.assert_allclose(memory.direction.mean(1), memory.gradient.mean(1), atol=1e-12)


@pytest.mark.parametrize("method", ["gossip", "copies", "tracking", "d2", "extra"])
def test_the_average_model_moves_by_the_mean_step(x64, tiny, method):
    """By −α·mean(G), whatever is exchanged: with links that come and go, and compressed copies."""
    given = {"compressor": "top_k", "ratio": 0.1, "gamma": 0.4} if method == "copies" else {}
    case = random_case(tiny, closing=method != "copies")
    states, _, wanted = check(tiny, case, method, given, r=2000.0)
    means = np.asarray(states.weights).reshape(ITERATIONS, DEVICES, -1).mean(1)
    scale, offset, exponent = LEARNING_RATE
    for k in range(1, ITERATIONS):
        memory, rate = wanted[k].memory, scale / (offset + k) ** exponent
        if method in ("d2", "extra"):
            step = -memory["U"].mean(0)
        else:
            step = -rate * memory["G"].mean(0) if method == "tracking" else memory["delta"].mean(0)
        np.testing.assert_allclose(means[k] - means[k - 1], step, atol=1e-12)
