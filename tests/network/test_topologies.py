"""Every topology gives a proper, connected graph; random ones are found even where they are rare."""

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import efhc_jax as efhc
from efhc_jax.errors import DataError, ExperimentError
from efhc_jax.network.geometry import is_connected
from efhc_jax.network.slots import to_matrix
from efhc_jax.network.topologies import (
    GRAPHS,
    NetworkSettings,
    checked_links,
    draw_links,
    from_networkx,
    geometric,
)


@pytest.mark.parametrize("devices", [1, 2, 3, 10, 33])
@pytest.mark.parametrize("name", GRAPHS)
def test_conforms(name, devices, tmp_path):
    path = tmp_path / "path.npy"
    np.save(path, np.eye(devices, k=1) + np.eye(devices, k=-1))
    settings = NetworkSettings(devices, 0.6, 0.6, str(path))
    links = draw_links(name, settings, np.random.default_rng(0))
    assert links.shape[1:] == (2,)
    assert (links[:, 0] < links[:, 1]).all()
    assert len(np.unique(links, axis=0)) == len(links)
    adjacency = to_matrix(links, devices)
    assert networkx.is_connected(networkx.from_numpy_array(adjacency))


def test_geometric_links_what_is_near():
    near = geometric(NetworkSettings(12, 0.4, 0.4), np.random.default_rng(4))
    wide = geometric(NetworkSettings(12, 0.8, 0.4), np.random.default_rng(4))
    assert len(near) < len(wide)
    assert {tuple(link) for link in near} < {tuple(link) for link in wide}


def test_geometric_is_found_where_one_draw_in_thousands_is_connected():
    links = geometric(NetworkSettings(10, 0.2, 0.2), np.random.default_rng(0))
    assert is_connected(to_matrix(links, 10))


def test_any_networkx_graph_is_a_topology():
    graph = networkx.DiGraph([("b", "a"), ("a", "c"), ("c", "a"), ("c", "c")])
    topology = from_networkx(graph)
    links = topology(NetworkSettings(3, 0.4, 0.4), np.random.default_rng(0))
    assert links.tolist() == [[0, 1], [1, 2]], "b, a, c are devices 0, 1, 2"
    with pytest.raises(ExperimentError, match="devices=10: the graph has 3 nodes"):
        topology(NetworkSettings(10, 0.4, 0.4), np.random.default_rng(0))


def test_a_file_of_several_graphs_is_no_topology(tmp_path):
    (tmp_path / "links.csv").write_text("0,0,1\n5,1,2\n")
    settings = NetworkSettings(3, 0.4, 0.4, str(tmp_path / "links.csv"))
    with pytest.raises(DataError, match="has 2 graphs over time; run them with dynamics='trace'"):
        draw_links("file", settings, np.random.default_rng(0))


def test_an_unreachable_connectivity_is_named(monkeypatch):
    monkeypatch.setattr("efhc_jax.network.geometry.MAX_DRAWS", 20_000)
    message = r"connectivity=0.05: no connected graph in 20,000 draws for 10 devices; try 0\.\d+"
    with pytest.raises(ExperimentError, match=message):
        geometric(NetworkSettings(10, 0.05, 0.05), np.random.default_rng(0))


def test_ring_by_hand():
    links = draw_links("ring", NetworkSettings(4, 0.4, 0.4), np.random.default_rng(0))
    assert links.tolist() == [[0, 1], [0, 3], [1, 2], [2, 3]]


@pytest.mark.parametrize(
    ("name", "devices", "links"),
    [
        ("star", 4, [[0, 1], [0, 2], [0, 3]]),
        ("grid", 6, [[0, 1], [0, 3], [1, 2], [1, 4], [2, 5], [3, 4], [4, 5]]),
        (
            "exponential",
            5,
            [[0, 1], [0, 2], [0, 3], [0, 4], [1, 2], [1, 3], [1, 4], [2, 3], [2, 4], [3, 4]],
        ),
        ("exponential", 8, None),
    ],
)
def test_small_topologies_by_hand(name, devices, links):
    found = draw_links(name, NetworkSettings(devices, 0.4, 0.4), np.random.default_rng(0)).tolist()
    if links is None:  # eight devices: one, two and four further on, the last of them shared
        assert len(found) == 8 + 8 + 4
    else:
        assert found == links


def test_random_topologies_differ_between_seeds_and_not_within():
    settings = NetworkSettings(20, 0.3, 0.3)
    for name in ("erdos_renyi", "watts_strogatz", "barabasi_albert"):
        one, same, other = (
            draw_links(name, settings, np.random.default_rng(seed)) for seed in (0, 0, 1)
        )
        np.testing.assert_array_equal(one, same)
        assert one.tolist() != other.tolist()


def test_a_random_graph_that_is_never_connected_is_named():
    with pytest.raises(ExperimentError, match=r"connectivity=0.001: no connected graph in 2,000 draws"):
        draw_links("erdos_renyi", NetworkSettings(20, 0.001, 0.001), np.random.default_rng(0))


def test_many_devices_are_linked_as_a_few_would_be(monkeypatch):
    settings = NetworkSettings(150, 0.2, 0.2)
    all_pairs = geometric(settings, np.random.default_rng(0))
    monkeypatch.setattr("efhc_jax.network.geometry._SMALL", 10)
    np.testing.assert_array_equal(geometric(settings, np.random.default_rng(0)), all_pairs)


@given(st.integers(1, 12), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_connectedness_agrees_with_networkx(devices, density, seed):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((5, devices, devices)) < density, 1)
    graphs = upper | upper.transpose(0, 2, 1)
    expected = [networkx.is_connected(networkx.from_numpy_array(graph)) for graph in graphs]
    assert is_connected(graphs).tolist() == expected


def linked(pairs):
    return lambda settings, rng: pairs


@pytest.mark.parametrize(
    ("links", "said"),
    [
        (np.eye(6, k=1) + np.eye(6, k=-1), "gave an adjacency matrix (6, 6)"),
        (np.eye(6, k=1, dtype=bool), "return np.argwhere(np.triu(adjacency)) instead"),
        ([(0, 1), (2, 6)], "has a link to device 6, but the 6 devices are 0 to 5; set devices=7"),
        ([(0, -1)], "has a link to device -1"),
        ([(0, 1), (2, 3), (3, 4)], "its 3 components have 3, 2, 1 devices, and device 2 is not reached"),
        ([], "its 6 components have 1, 1, 1, 1, 1, … devices"),
        (np.zeros((3, 2)), "gave float64 (3, 2); return links as pairs of device indices"),
        (None, "gave object ()"),
        (networkx.path_graph(4), "devices=6: the graph has 4 nodes"),
        (networkx.empty_graph(6), "is not connected"),
    ],
)
def test_a_graph_of_the_users_own_is_looked_at(links, said, monkeypatch):
    is_graph = isinstance(links, networkx.Graph)
    monkeypatch.setitem(GRAPHS, "mine", efhc.from_networkx(links) if is_graph else linked(links))
    experiment = efhc.Experiment(dataset="synthetic", devices=6, graph="mine", iterations=2)
    with pytest.raises(efhc.ExperimentError) as error:
        efhc.simulate(experiment)
    assert said in str(error.value)


def test_links_are_taken_in_any_order_and_direction():
    ring = [(5, 0), (1, 0), (1, 2), (2, 3), (4, 3), (4, 5), (0, 1), (2, 2)]
    expected = draw_links("ring", NetworkSettings(6, 0.4, 0.4), np.random.default_rng(0))
    np.testing.assert_array_equal(checked_links(ring, 6, "graph='mine'"), expected)


def test_a_disconnected_graph_is_run_when_asked_for():
    apart = [(0, 1), (2, 3)]
    np.testing.assert_array_equal(checked_links(apart, 4, "", allow_disconnected=True), apart)


def test_a_disconnected_graph_of_a_file_is_refused(tmp_path):
    (tmp_path / "links.csv").write_text("0,1\n2,3\n")
    fields = {"dataset": "synthetic", "devices": 4, "graph_file": str(tmp_path / "links.csv")}
    for more in ({"graph": "file"}, {"dynamics": "trace"}):
        with pytest.raises(efhc.ExperimentError, match="graph_file=.*: is not connected; its 2 comp"):
            efhc.simulate(efhc.Experiment(**fields, **more))


def test_what_is_no_networkx_graph_is_refused():
    with pytest.raises(efhc.ExperimentError, match="ndarray is not a NetworkX graph"):
        efhc.from_networkx(np.eye(3))
