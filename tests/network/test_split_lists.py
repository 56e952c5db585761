"""Split lists give what the matrix and whole lists give, for any graph and any masks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import efhc_jax as efhc
import oracle
from efhc_jax.engine.mixing import average, metropolis_weights
from efhc_jax.network import slots as storage
from efhc_jax.network import split_lists as split
from efhc_jax.network.dynamics.base import NetworkValues, link_coins
from efhc_jax.network.links import used_links
from efhc_jax.network.slots import Network, as_matrix, make_network, pad_networks, stored, sum_of_slots
from efhc_jax.network.split_lists import SplitLists, split_lists
from efhc_jax.resources.bandwidth import transmission_time
from efhc_jax.runs.prepare import prepare

DEVICES = 30
STAR = np.stack([np.zeros(299, int), np.arange(1, 300)], axis=1)


def as_split(links, devices, slots):
    lists = split_lists(np.concatenate([links, links[:, ::-1]]), devices, slots)
    return storage._without_missing_links(lists)


def as_lists(links, devices):
    return storage._without_missing_links(
        as_split(links, devices, devices).neighbors.neighbors[:devices]
    )


@st.composite
def graphs(draw):
    """Graphs in which the first devices have most links."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    likely = draw(st.floats(0, 1)) ** (1 + np.arange(DEVICES))[:, None]
    return np.argwhere(np.triu(rng.random((DEVICES, DEVICES)) < likely, 1)), rng


@settings(max_examples=6, deadline=None)
@given(graphs(), st.sampled_from([1, 2, 8]), st.booleans())
def test_split_lists_and_matrix_agree(graph, slots, coordinated):
    links, rng = graph
    network = as_split(links, DEVICES, slots)
    dense = jnp.asarray(storage.to_matrix(links, DEVICES))
    np.testing.assert_array_equal(as_matrix(*network), dense)
    fired, gone = rng.random(DEVICES) < 0.3, rng.random((DEVICES, DEVICES)) < 0.3
    before = dense & ~(gone | gone.T)
    known = storage.refitted(before, Network(dense), network)
    np.testing.assert_array_equal(as_matrix(known, network.neighbors), before)
    used = used_links(network.links, known, jnp.asarray(fired), network.neighbors)
    expected = used_links(dense, before, jnp.asarray(fired))
    np.testing.assert_array_equal(as_matrix(used, network.neighbors), expected)
    np.testing.assert_array_equal(sum_of_slots(used, network.neighbors), expected.sum(1))
    shares = as_matrix(metropolis_weights(*network), network.neighbors)
    np.testing.assert_allclose(shares, oracle.metropolis_weights(np.asarray(dense)), rtol=1e-6)
    weights, flag = jnp.asarray(rng.normal(size=(DEVICES, 2, 3)), jnp.float32), jnp.asarray(coordinated)
    mixed = average(weights, metropolis_weights(*network), used, flag, network.neighbors)
    np.testing.assert_allclose(
        mixed, average(weights, metropolis_weights(dense), expected, flag), atol=2e-6
    )
    bandwidth = jnp.asarray(rng.uniform(500, 9000, DEVICES), jnp.float32)
    np.testing.assert_allclose(
        transmission_time(used, network.links, bandwidth, 100, network.neighbors),
        oracle.transmission_time(np.asarray(expected), np.asarray(dense), bandwidth, 100),
        rtol=1e-5,
    )


@settings(max_examples=4, deadline=None)
@given(graphs(), st.sampled_from([1, 3]))
def test_transitions_are_symmetric_and_doubly_stochastic(graph, slots):
    links, rng = graph
    network = as_split(links, DEVICES, slots)
    fired = jnp.asarray(rng.random(DEVICES) < 0.5)
    used = used_links(network.links, network.links, fired, network.neighbors)
    never = jnp.asarray(False)
    shares, identity = metropolis_weights(*network), jnp.eye(DEVICES)
    transition = np.asarray(average(identity, shares, used, never, network.neighbors))
    np.testing.assert_allclose(transition, transition.T, atol=1e-6)
    np.testing.assert_allclose(transition.sum(1), 1, atol=1e-5)
    expected = oracle.transition_matrix(
        storage.to_matrix(links, DEVICES), np.asarray(as_matrix(used, network.neighbors))
    )
    np.testing.assert_allclose(transition, expected, atol=2e-6)


@settings(max_examples=4, deadline=None)
@given(graphs())
def test_a_link_has_the_same_coin_in_every_storage(graph):
    links, _ = graph
    dense = storage.to_matrix(links, DEVICES)
    found = []
    for network in (Network(jnp.asarray(dense)), as_lists(links, DEVICES), as_split(links, DEVICES, 2)):
        values = NetworkValues(jax.random.key(3), *network, ())
        coins = jnp.where(network.links, link_coins(values, jnp.int32(5)), 0)
        found.append(np.asarray(as_matrix(coins, network.neighbors)))
    np.testing.assert_array_equal(found[0] * dense, found[1])
    np.testing.assert_array_equal(found[1], found[2])
    np.testing.assert_array_equal(found[2], found[2].T)


def test_skewed_graphs_are_split_and_even_ones_are_not():
    star = make_network(STAR, 300)
    assert isinstance(star.neighbors, SplitLists)
    assert star.links.shape == stored(np.bincount(STAR.ravel()))[:2] == (337, 8)
    assert make_network(STAR[:63], 64).neighbors is None
    assert stored(np.full(10_000, 10)).rows == 10_000
    skewed = np.maximum(2, (2 * np.sqrt(10_000 / np.arange(1, 10_001))).astype(int))
    assert stored(skewed).slots == 8


def test_further_rows_are_added_in_the_fewest_steps():
    """2,500 rows of one device: 313 sums, 40, 5, and 1."""
    links = np.stack([np.zeros(20_007, int), np.arange(1, 20_008)], axis=1)
    lists = as_split(links, 20_008, 8).neighbors
    assert [len(step) for step in lists.steps] == [313, 40, 5, 1]
    sums = split.sum_of_rows(jnp.ones(len(lists.neighbors), jnp.int32), lists)
    assert sums[0] == 1 + 2500
    assert (sums[1:] == 1).all()


def test_networks_of_different_storage_are_stacked():
    ring = np.stack([np.arange(300), (np.arange(300) + 1) % 300], axis=1)
    short = STAR[:100]
    networks = [make_network(STAR, 300), make_network(ring, 300), as_split(short, 300, 2)]
    for part in (networks, networks[:2]):
        together = pad_networks(part)
        shapes = [[leaf.shape for leaf in jax.tree.leaves(one)] for one in together]
        assert all(shape == shapes[0] for shape in shapes)
        for before, after in zip(part, together, strict=True):
            np.testing.assert_array_equal(as_matrix(*before), as_matrix(*after))
            ones = sum_of_slots(after.links, after.neighbors)
            np.testing.assert_array_equal(ones, np.asarray(as_matrix(*before)).sum(1))


CHANGES = {
    "static": {"graph": "star"},
    "failures": {"graph": "star", "dynamics": "failures"},
    "markov": {"graph": "barabasi_albert", "dynamics": "markov"},
    "periodic": {"graph": "star", "dynamics": "periodic", "dynamics.period": 3},
    "churn": {"graph": "barabasi_albert", "dynamics": "churn", "dynamics.leave_probability": 0.2},
}


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_a_run_on_split_lists_is_the_run_on_the_matrix(x64, tiny, monkeypatch, changes):
    experiment = efhc.Experiment(
        devices=12, iterations=20, eval_every=10, split="iid", r=4000.0, learning_rate=0.5, **changes
    )
    plain = efhc.simulate(experiment, tiny, trace=True)
    monkeypatch.setattr(storage, "_MATRIX_UP_TO", 0)
    monkeypatch.setattr(storage, "_SPLIT_SLOTS", (1, 2))
    monkeypatch.setattr(storage, "_size", lambda one: one.slots if one.slots <= 2 else 10**6)
    assert isinstance(prepare(experiment, tiny).network.neighbors, SplitLists)
    listed = efhc.simulate(experiment, tiny, trace=True)
    for name in ("adjacency", "used_links", "fired", "sample", "links_used"):
        np.testing.assert_array_equal(plain[name], listed[name])
    np.testing.assert_allclose(plain.weights, listed.weights, atol=1e-12)
    np.testing.assert_allclose(plain.transmission_time, listed.transmission_time)
