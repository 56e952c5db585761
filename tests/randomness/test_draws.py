"""What is drawn in each iteration: from one's own samples, uniformly, without repetition."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import efhc_jax as efhc
from efhc_jax.data.splits import split_data
from efhc_jax.randomness.draws import draw_coins, draw_models, draw_samples, run_key

LABELS = np.repeat(np.arange(5), 8).astype(np.int32)


@pytest.fixture(scope="module")
def shards():
    rng = np.random.default_rng(0)
    return jax.tree.map(jnp.asarray, split_data("labels", LABELS, devices=5, rng=rng))


def many(shards, batch_size, count=4000, seed=0):
    key = jax.random.key(seed)
    draw = jax.jit(jax.vmap(lambda k: draw_samples(key, k, shards, batch_size)))
    return np.asarray(draw(jnp.arange(count)))


@pytest.mark.parametrize("batch_size", [1, 3, 8])
def test_a_batch_is_a_set_of_ones_own_samples(shards, batch_size):
    for batches in many(shards, batch_size, count=200):
        for device, batch in enumerate(batches):
            owned = shards.pool[shards.start[device] :][: shards.count[device]]
            assert set(batch) <= set(np.asarray(owned))
            assert len(set(batch)) == batch_size


@pytest.mark.parametrize("batch_size", [1, 3])
def test_every_sample_is_equally_likely(shards, batch_size):
    batches = many(shards, batch_size)
    counts = np.bincount(batches.ravel(), minlength=len(LABELS))
    expected = batches.size / len(LABELS)
    chi_squared = ((counts - expected) ** 2 / expected).sum()
    assert chi_squared < 75  # 39 degrees of freedom: exceeded once in 2,000


def test_pairs_are_equally_likely(shards):
    batches = np.sort(many(shards, 2)[:, 0] - shards.pool[: shards.count[0]].min(), axis=1)
    own = shards.pool[: shards.count[0]]
    assert len(own) == 8
    pairs, counts = np.unique(batches, axis=0, return_counts=True)
    assert len(pairs) == 28
    expected = 4000 / 28
    assert ((counts - expected) ** 2 / expected).sum() < 58  # 27 degrees of freedom, 1 in 2,000


def test_a_draw_depends_on_seed_and_iteration_alone(shards):
    key = jax.random.key(7)
    alone = draw_samples(key, jnp.int32(123), shards, 2)
    np.testing.assert_array_equal(alone, many(shards, 2, count=200, seed=7)[123])
    assert not np.array_equal(alone, many(shards, 2, count=200, seed=8)[123])


def test_coins_are_uniform_and_their_own():
    key = jax.random.key(0)
    coins = np.asarray(jax.vmap(lambda k: draw_coins(key, k, 4))(jnp.arange(2000)))
    assert coins.min() >= 0
    assert coins.max() < 1
    assert coins.mean() == pytest.approx(0.5, abs=0.02)
    assert np.corrcoef(coins[:, 0], coins[:, 1])[0, 1] == pytest.approx(0, abs=0.08)


def test_every_device_has_its_own_first_model():
    rows = draw_models(jax.random.key(0), lambda key: jax.random.normal(key, (6,)), 5)
    assert len(np.unique(np.asarray(rows), axis=0)) == 5


@pytest.mark.parametrize("seed", [0, 1, 7, 2**31, 2**32 - 1])
@pytest.mark.parametrize("bits", [32, 64])
def test_the_key_of_a_run_is_that_of_jax(seed, bits):
    with jax.enable_x64(bits == 64):
        expected = jax.random.key(seed, impl="threefry2x32")
        assert run_key(seed).dtype == expected.dtype
        np.testing.assert_array_equal(jax.random.key_data(run_key(seed)), jax.random.key_data(expected))


SETTINGS = {
    "jax_threefry_partitionable": False,
    "jax_random_seed_offset": 3,
    "jax_default_prng_impl": "rbg",
    "jax_enable_custom_prng": True,
    "jax_numpy_dtype_promotion": "strict",
    "jax_numpy_rank_promotion": "raise",
    "jax_legacy_prng_key": "error",
    "jax_debug_nans": True,
}


@pytest.fixture(scope="module")
def usual():
    return [efhc.simulate(experiment, audit=True) for experiment in EXPERIMENTS]


BASE = efhc.Experiment(dataset="synthetic", devices=5, iterations=6, eval_every=3)
EXPERIMENTS = [
    BASE.replace(policy="rg", split="dirichlet"),
    BASE.replace(model="quadratic", learning_rate=1e-4),
    BASE.replace(dynamics=efhc.dynamics.Mobility(speed=0.1)),
]


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_of_jax_do_not_change_what_a_seed_means(setting, usual):
    before = jax.config.values[setting]
    jax.config.update(setting, SETTINGS[setting])
    try:
        for experiment, expected in zip(EXPERIMENTS, usual, strict=True):
            assert efhc.simulate(experiment, audit=True).equals(expected)
        grid = efhc.sweep(EXPERIMENTS[0], seed=[0])
        np.testing.assert_array_equal(grid.broadcasts.isel(seed=0), usual[0].broadcasts)
    finally:
        jax.config.update(setting, before)
