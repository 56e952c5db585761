"""P(k) for any graph and any masks: symmetric, doubly stochastic, and bounded away from zero."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from efhc_jax.engine.mixing import metropolis_weights, mix, transition_matrix
from efhc_jax.network.links import used_links


@st.composite
def networks(draw, changing=False):
    """Any symmetric graph of 1 to 64 devices, and any choice of who fires."""
    devices = draw(st.integers(1, 64))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    density = draw(st.floats(0, 1))

    def graph():
        upper = np.triu(rng.random((devices, devices)) < density, 1)
        return upper | upper.T

    adjacency = graph()
    previous = graph() if changing else adjacency
    fired = rng.random(devices) < draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    return adjacency, previous, fired


def matrix_of(adjacency, previous, fired):
    return np.asarray(transition_matrix(adjacency, used_links(adjacency, previous, fired)))


@given(networks(changing=True))
def test_transition_matrix_is_symmetric_and_doubly_stochastic(network):
    adjacency, previous, fired = network
    matrix = matrix_of(*network)
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_allclose(matrix.sum(0), 1, atol=1e-5)
    np.testing.assert_allclose(matrix.sum(1), 1, atol=1e-5)


@given(networks(changing=True))
def test_diagonal_and_used_links_are_at_least_one_over_m(network):
    adjacency, previous, fired = network
    matrix = matrix_of(*network)
    used = np.asarray(used_links(*network))
    floor = 1 / len(fired) - 1e-6
    assert (np.diag(matrix) >= floor).all()
    assert (matrix[used] >= floor).all()
    assert (matrix[~used & ~np.eye(len(fired), dtype=bool)] == 0).all()


@given(networks(changing=True))
def test_agrees_with_the_oracle_loops(network):
    adjacency, previous, fired = network
    used = np.asarray(used_links(*network))
    np.testing.assert_allclose(
        metropolis_weights(adjacency), oracle.metropolis_weights(adjacency), rtol=1e-6
    )
    expected = oracle.transition_matrix(adjacency, used)
    np.testing.assert_allclose(transition_matrix(adjacency, used), expected, atol=1e-5)


@given(networks())
def test_nothing_happens_when_nobody_fires(network):
    adjacency, _, fired = network
    matrix = matrix_of(adjacency, adjacency, np.zeros_like(fired))
    np.testing.assert_array_equal(matrix, np.eye(len(fired)))


@given(networks(changing=True), st.integers(0, 100))
def test_mixing_leaves_the_mean_as_it_was(network, seed):
    weights = np.random.default_rng(seed).normal(size=(len(network[2]), 7)).astype(np.float32)
    mixed = mix(jnp.asarray(matrix_of(*network)), jnp.asarray(weights))
    np.testing.assert_allclose(mixed.mean(0), weights.mean(0), atol=2e-6)


def test_a_link_is_used_when_an_end_fires_or_it_is_new():
    adjacency = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]], bool)
    previous = adjacency.copy()
    previous[2, 3] = previous[3, 2] = False
    fired = np.array([True, False, False, False])
    used = np.asarray(used_links(adjacency, previous, fired))
    assert {tuple(pair) for pair in np.argwhere(used)} == {
        *[(0, 1), (1, 0), (0, 3), (3, 0)],  # device 0 fired
        *[(2, 3), (3, 2)],  # the link has just appeared
    }


@pytest.mark.parametrize("kind", [np.asarray, np.ndarray.tolist])
def test_weights_of_a_path_by_hand(kind):
    path = kind(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    third = 1 / 3
    np.testing.assert_allclose(
        metropolis_weights(path), [[0, third, 0], [third, 0, third], [0, third, 0]]
    )
