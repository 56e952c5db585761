"""Lists of neighbours give what the matrix gives, for any graph and any masks."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import efhc_jax as efhc
from efhc_jax.engine.mixing import average, metropolis_weights
from efhc_jax.network import slots as network
from efhc_jax.network.links import used_links
from efhc_jax.network.slots import Network, as_matrix, in_slots, make_network, pad_networks, to_matrix
from efhc_jax.resources.bandwidth import transmission_time
from efhc_jax.runs.prepare import prepare


def random_links(rng, devices, density):
    return np.argwhere(np.triu(rng.random((devices, devices)) < density, 1))


def lists_of(links, devices):
    """Neighbour lists even where a matrix would be chosen."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(network, "_MATRIX_UP_TO", 0)
        patch.setattr(network, "_SLOTS_TOGETHER", 1)
        found = make_network(links, devices)
        if found.neighbors is None:  # too dense for lists: spread them by hand
            return None
        return found


@settings(max_examples=15)
@given(st.sampled_from([8, 21, 40]), st.floats(0.01, 0.15), st.integers(0, 2**32 - 1))
def test_lists_and_matrix_agree(devices, density, seed):
    rng = np.random.default_rng(seed)
    links = random_links(rng, devices, density)
    sparse = lists_of(links, devices)
    if sparse is None:
        return
    dense = jnp.asarray(to_matrix(links, devices))
    np.testing.assert_array_equal(as_matrix(*sparse), dense)
    fired = jnp.asarray(rng.random(devices) < 0.3)
    gone = rng.random((devices, devices)) < 0.3
    gone |= gone.T  # some links were not there before
    rows = np.arange(devices)[:, None]
    before = sparse.links & ~gone[rows, np.asarray(sparse.neighbors)]
    used = used_links(sparse.links, before, fired, sparse.neighbors)
    expected = used_links(dense, dense & ~gone, fired)
    np.testing.assert_array_equal(as_matrix(used, sparse.neighbors), expected)
    np.testing.assert_allclose(
        metropolis_weights(sparse.links, sparse.neighbors).sum(1), metropolis_weights(dense).sum(1), 1e-6
    )
    weights = jnp.asarray(rng.normal(size=(devices, 5)), jnp.float32)
    for coordinated in (False, True):
        flag = jnp.asarray(coordinated)
        np.testing.assert_allclose(
            average(weights, metropolis_weights(*sparse), used, flag, sparse.neighbors),
            average(weights, metropolis_weights(dense), expected, flag),
            atol=1e-6,
        )
    bandwidth = jnp.asarray(rng.uniform(500, 9000, devices))
    np.testing.assert_allclose(
        transmission_time(used, sparse.links, bandwidth, 100),
        transmission_time(expected, dense, bandwidth, 100),
        rtol=1e-6,
    )


def test_few_devices_are_a_matrix_and_many_sparse_ones_are_lists():
    rng = np.random.default_rng(0)
    assert make_network(random_links(rng, 20, 0.05), 20).neighbors is None
    assert make_network(random_links(rng, 200, 0.02), 200).neighbors is not None
    assert make_network(random_links(rng, 200, 0.5), 200).neighbors is None


def test_networks_of_different_length_are_stacked():
    rng = np.random.default_rng(0)
    networks = [make_network(random_links(rng, 200, density), 200) for density in (0.01, 0.05)]
    assert networks[0].links.shape != networks[1].links.shape
    padded = pad_networks(networks)
    assert padded[0].links.shape == padded[1].links.shape
    for before, after in zip(networks, padded, strict=True):
        np.testing.assert_array_equal(as_matrix(*before), as_matrix(*after))
    mixed = pad_networks([networks[0], Network(jnp.asarray(~np.eye(200, dtype=bool)))])
    assert all(one.neighbors is None for one in mixed)


def test_a_run_on_lists_is_the_run_on_the_matrix(x64, tiny, monkeypatch):
    experiment = efhc.Experiment(
        devices=12, graph="ring", iterations=20, eval_every=10, split="iid", r=4000.0, learning_rate=0.5
    )
    plain = efhc.simulate(experiment, tiny, trace=True)
    monkeypatch.setattr(network, "_MATRIX_UP_TO", 0)
    monkeypatch.setattr(network, "_SLOTS_TOGETHER", 1)
    assert prepare(experiment, tiny).network.neighbors is not None
    listed = efhc.simulate(experiment, tiny, trace=True)
    assert 0.05 < plain.fired.mean() < 0.95
    for name in ("adjacency", "used_links", "fired", "sample", "links_used"):
        np.testing.assert_array_equal(plain[name], listed[name])
    np.testing.assert_allclose(plain.weights, listed.weights, atol=1e-12)
    np.testing.assert_allclose(plain.transmission_time, listed.transmission_time)


def test_links_are_told_apart_however_many_devices_there_are():
    """i·m + j does not fit 32 bits above 65,535 devices."""
    devices = 70_000
    path = np.stack([np.arange(devices - 1), np.arange(1, devices)], axis=1)
    network = make_network(path, devices)
    np.testing.assert_array_equal(in_slots(path, network), network.links)
