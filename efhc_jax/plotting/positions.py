"""Positions of the devices of an experiment, for figures of its network.

Positions are not stored with results; they are recomputed from the settings by the functions of the run
itself. Topologies without positions get a layout that shows their shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from efhc_jax.experiment.experiment import Experiment, check_registered
from efhc_jax.network.geometry import connected_places
from efhc_jax.network.slots import as_matrix
from efhc_jax.randomness.streams import Stream, host_stream
from efhc_jax.runs.prepare import dynamics_values, network_settings, network_values

_ROUND = ("ring", "complete", "exponential", "watts_strogatz")  # topologies that are drawn as a circle
_STEPS_TOGETHER = 1_000  # iterations of movement that are computed at once


def places_of(experiment: Experiment, adjacency: np.ndarray, steps: int) -> np.ndarray:
    """Positions of the devices in the unit square.

    Args:
        experiment: the experiment.
        adjacency: all pairs that are ever linked (device, device), for topologies without positions.
        steps: number of iterations, for devices that move.

    Returns:
        (device, 2), or (step, device, 2) for devices that move.
    """
    if experiment.dynamics == "mobility":
        return _walk(experiment, steps)
    if experiment.dynamics != "trace" and experiment.graph == "geometric":
        rng = host_stream(experiment.seed, Stream.GRAPH)
        settings = network_settings(experiment)
        return connected_places(settings.devices, settings.placement, rng)
    is_round = experiment.dynamics != "trace" and experiment.graph in _ROUND
    return _layout(adjacency, "circular" if is_round else "kamada_kawai")


def first_graph(experiment: Experiment) -> np.ndarray:
    """The links (device, device) of the graph before dynamics are applied."""
    check_registered(experiment)
    network = network_values(experiment)
    return np.asarray(as_matrix(network.adjacency, network.neighbors))


def _walk(experiment: Experiment, steps: int) -> np.ndarray:
    """The positions of devices that move, from the dynamics of the run itself."""
    import jax
    import jax.numpy as jnp

    from efhc_jax.network.dynamics import DYNAMICS
    from efhc_jax.network.dynamics.base import first_memory

    network, parameters = network_values(experiment), dynamics_values(experiment)
    dynamics = DYNAMICS[experiment.dynamics]

    @jax.jit
    def some(memory: Any, first: Any) -> Any:
        def one(memory: Any, iteration: Any) -> Any:
            _, following = dynamics.at(network, parameters, memory, iteration)
            return following, memory.places

        return jax.lax.scan(one, memory, first + jnp.arange(_STEPS_TOGETHER))

    memory, places = first_memory(dynamics, network, parameters), []
    for first in range(0, max(steps, 1), _STEPS_TOGETHER):
        memory, more = some(memory, jnp.int32(first))
        places.append(np.asarray(more))
    return np.concatenate(places)[: max(steps, 1)]


def _layout(adjacency: np.ndarray, name: str) -> np.ndarray:
    """A NetworkX layout, scaled to the unit square; a circle if the graph is not connected."""
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
