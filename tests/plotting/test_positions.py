"""Places of devices: those that the run itself went by."""

import numpy as np
import pytest

import efhc_jax as efhc
from efhc_jax.network.geometry import within
from efhc_jax.network.topologies import GRAPHS
from efhc_jax.plotting.positions import first_graph, places_of

BASE = efhc.Experiment(devices=8, connectivity=0.5, iterations=30, eval_every=30, seed=3)


def test_geometric_places_give_the_links_of_the_run(tiny):
    for experiment in (BASE, BASE.replace(placement=0.4), BASE.replace(seed=4)):
        run = efhc.simulate(experiment, tiny, audit=True)
        places = places_of(experiment, run.adjacency.values[0], 30)
        assert places.shape == (8, 2)
        np.testing.assert_array_equal(within(places, 0.5), run.adjacency.values[0])
        np.testing.assert_array_equal(first_graph(experiment), run.adjacency.values[0])


def test_devices_that_move_are_followed_to_the_last_iteration(tiny, monkeypatch):
    monkeypatch.setattr("efhc_jax.plotting.positions._STEPS_TOGETHER", 11)  # a walk in several pieces
    experiment = BASE.replace(dynamics=efhc.dynamics.Mobility(speed=0.05))
    run = efhc.simulate(experiment, tiny, audit=True)
    places = places_of(experiment, run.adjacency.values[0], 30)
    assert places.shape == (30, 8, 2)
    np.testing.assert_array_equal(within(places, 0.5), run.adjacency.values)
    assert (run.adjacency.values[0] != run.adjacency.values[-1]).any()


@pytest.mark.parametrize("graph", [name for name in GRAPHS if name not in ("geometric", "file")])
def test_every_topology_has_a_layout(graph):
    experiment = BASE.replace(graph=graph)
    adjacency = first_graph(experiment)
    assert adjacency.any()
    places = places_of(experiment, adjacency, 1)
    assert places.shape == (8, 2)
    assert (places >= 0).all()
    assert (places <= 1).all()
    apart = np.linalg.norm(places[:, None] - places[None], axis=-1)[~np.eye(8, dtype=bool)]
    assert apart.min() > 0.05, "two devices lie on each other"


def test_a_graph_that_falls_apart_is_a_circle():
    pairs = np.kron(np.eye(4, dtype=bool), ~np.eye(2, dtype=bool))
    places = places_of(BASE.replace(graph="erdos_renyi"), pairs, 1)
    np.testing.assert_allclose(np.linalg.norm(places - 0.5, axis=1), 0.45)


def test_a_single_device_has_a_place():
    alone = BASE.replace(graph="ring", devices=1, weak_fraction=0.0)
    assert np.isfinite(places_of(alone, np.zeros((1, 1), bool), 1)).all()
