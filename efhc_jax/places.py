"""Where the devices of an experiment stand, for pictures of its network.

Places are not stored with results: they follow from the settings, by the functions that the run itself
went by. Topologies without places get a layout that shows their shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from efhc_jax.config import Experiment, check_registered
from efhc_jax.data import Dataset
from efhc_jax.graphs import connected_places
from efhc_jax.network import as_matrix
from efhc_jax.scenario import Hyper, network_settings, prepare
from efhc_jax.streams import Stream, host_stream

_ROUND = ("ring", "complete", "exponential", "watts_strogatz")  # topologies that are drawn as a circle
_STEPS_TOGETHER = 1_000  # iterations of a walk that are computed at once


def places_of(experiment: Experiment, adjacency: np.ndarray, steps: int) -> np.ndarray:
    """Places of the devices, within the unit square.

    Args:
        experiment: whose network.
        adjacency: every pair that is ever linked (device, device), for topologies without places.
        steps: how many iterations to follow devices that move.

    Returns:
        (device, 2), or (step, device, 2) for devices that move.
    """
    if experiment.dynamics == "mobility":
        return _walk(experiment, steps)
    if experiment.dynamics != "trace" and experiment.graph == "geometric":
        rng = host_stream(experiment.seed, Stream.GRAPH)
        return connected_places(network_settings(experiment), rng)
    is_round = experiment.dynamics != "trace" and experiment.graph in _ROUND
    return _layout(adjacency, "circular" if is_round else "kamada_kawai")


def first_graph(experiment: Experiment) -> np.ndarray:
    """The links (device, device) of iteration 0, or those that dynamics take away from and give back."""
    hyper = _values(experiment)
    return np.asarray(as_matrix(hyper.adjacency, hyper.neighbors))


def _values(experiment: Experiment) -> Hyper:
    """The values of a run; what has no part in its network is left blank."""
    blank = {"split": "iid", "batch_size": 1, "policy": "zt", "model": "svm"}
    e = experiment.inherit(blank)
    check_registered(e)
    images, labels = np.zeros((e.devices, 1, 1), np.uint8), np.zeros(e.devices, np.int32)
    return prepare(e, Dataset("blank", images, labels, images, labels))


def _walk(experiment: Experiment, steps: int) -> np.ndarray:
    """The places of devices that move, from the dynamics of the run itself."""
    import jax
    import jax.numpy as jnp

    from efhc_jax.dynamics import DYNAMICS

    hyper = _values(experiment)
    dynamics = DYNAMICS[experiment.dynamics]

    @jax.jit
    def some(memory: Any, first: Any) -> Any:
        def one(memory: Any, iteration: Any) -> Any:
            return dynamics.at(hyper, memory, iteration).memory, memory["places"]

        return jax.lax.scan(one, memory, first + jnp.arange(_STEPS_TOGETHER))

    memory, places = dynamics.begin(hyper), []
    for first in range(0, max(steps, 1), _STEPS_TOGETHER):
        memory, more = some(memory, jnp.int32(first))
        places.append(np.asarray(more))
    return np.concatenate(places)[: max(steps, 1)]


def _layout(adjacency: np.ndarray, name: str) -> np.ndarray:
    """A NetworkX layout, stretched over the unit square; a circle where the graph falls apart."""
    import networkx

    graph = networkx.from_numpy_array(adjacency)
    layouts: dict[str, Callable[..., Any]] = {
        "circular": networkx.circular_layout,
        "kamada_kawai": networkx.kamada_kawai_layout,
    }
    found = layouts[name if networkx.is_connected(graph) else "circular"](graph)
    places = np.array([found[device] for device in range(len(adjacency))], dtype=float).reshape(-1, 2)
    low, high = places.min(0), places.max(0)
    return 0.05 + 0.9 * (places - low) / np.where(high > low, high - low, 1)
