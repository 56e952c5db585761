"""Every topology gives a proper, connected graph; random ones are found even where they are rare."""

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from efhc_jax.errors import ExperimentError
from efhc_jax.graphs import GRAPHS, NetworkSettings, geometric, is_connected


@pytest.mark.parametrize("devices", [1, 2, 3, 10, 33])
@pytest.mark.parametrize("name", GRAPHS)
def test_conforms(name, devices):
    adjacency = GRAPHS[name](NetworkSettings(devices, 0.6, 0.6), np.random.default_rng(0))
    assert adjacency.shape == (devices, devices)
    assert adjacency.dtype == bool
    assert (adjacency == adjacency.T).all()
    assert not adjacency.diagonal().any()
    assert networkx.is_connected(networkx.from_numpy_array(adjacency))


def test_geometric_links_what_is_near():
    near = geometric(NetworkSettings(12, 0.4, 0.4), np.random.default_rng(4))
    wide = geometric(NetworkSettings(12, 0.8, 0.4), np.random.default_rng(4))
    assert near.sum() < wide.sum()
    assert (wide | ~near).all(), "a longer reach keeps every link"


def test_geometric_is_found_where_one_draw_in_thousands_is_connected():
    adjacency = geometric(NetworkSettings(10, 0.2, 0.2), np.random.default_rng(0))
    assert is_connected(adjacency)


def test_an_unreachable_connectivity_is_named(monkeypatch):
    monkeypatch.setattr("efhc_jax.graphs.MAX_DRAWS", 20_000)
    message = r"connectivity=0.05: no connected graph in 20,000 draws for 10 devices; try 0\.\d+"
    with pytest.raises(ExperimentError, match=message):
        geometric(NetworkSettings(10, 0.05, 0.05), np.random.default_rng(0))


def test_ring_by_hand():
    assert GRAPHS["ring"](NetworkSettings(4, 0.4, 0.4), np.random.default_rng(0)).astype(
        int
    ).tolist() == [
        [0, 1, 0, 1],
        [1, 0, 1, 0],
        [0, 1, 0, 1],
        [1, 0, 1, 0],
    ]


@given(st.integers(1, 12), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_connectedness_agrees_with_networkx(devices, density, seed):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((5, devices, devices)) < density, 1)
    graphs = upper | upper.transpose(0, 2, 1)
    expected = [networkx.is_connected(networkx.from_numpy_array(graph)) for graph in graphs]
    assert is_connected(graphs).tolist() == expected
