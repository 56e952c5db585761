"""Physical networks: which devices can reach each other.

A topology is a function of the network's settings and a generator; it returns a boolean
adjacency matrix with an empty diagonal, and the graph is connected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from efhc_jax.errors import ExperimentError

MAX_DRAWS = 1_000_000
_BLOCK_ELEMENTS = 1 << 19  # draws are checked in blocks of about this many matrix entries

Adjacency = np.ndarray  # bool (device, device)


class NetworkSettings(NamedTuple):
    """What topologies go by; each reads what concerns it."""

    devices: int
    connectivity: float
    placement: float  # the connectivity at which random places must be connected


def geometric(settings: NetworkSettings, rng: np.random.Generator) -> Adjacency:
    """Devices at random places in the unit square, linked within distance `connectivity`.

    Places are drawn again until they are connected within distance `placement`: runs that share it and
    their generator have the same places, and their graphs nest. Sparse graphs are rarely connected
    (one draw in 6,000 for ten devices at 0.2), so draws are checked in blocks, cheapest test first.

    Raises:
        ExperimentError: no connected graph in a million draws.
    """
    devices = settings.devices
    draws = 0
    block = max(1, _BLOCK_ELEMENTS // devices**2)
    while draws < MAX_DRAWS:
        places = rng.random((block, devices, 2))
        adjacency = within(places, settings.placement)
        no_hermit = np.flatnonzero(adjacency.any(-1).all(-1)) if devices > 1 else np.arange(block)
        connected = no_hermit[is_connected(adjacency[no_hermit])]
        if connected.size:
            return within(places[connected[0]], settings.connectivity)
        draws += block
    raise ExperimentError(
        f"connectivity={settings.placement:g}: no connected graph in {MAX_DRAWS:,} draws for {devices} "
        f"devices; try {_likely_connectivity(devices):.2g} or more"
    )


def ring(settings: NetworkSettings, rng: np.random.Generator) -> Adjacency:
    """Each device linked to the next, the last to the first."""
    oneself = np.eye(settings.devices, dtype=bool)
    following = np.roll(oneself, 1, axis=1)
    return (following | following.T) & ~oneself


def complete(settings: NetworkSettings, rng: np.random.Generator) -> Adjacency:
    """Every device linked to every other."""
    return ~np.eye(settings.devices, dtype=bool)


GRAPHS: dict[str, Callable[[NetworkSettings, np.random.Generator], Adjacency]] = {
    "geometric": geometric,
    "ring": ring,
    "complete": complete,
}

DYNAMICS = ("static",)


def within(positions: np.ndarray, radius: float) -> Adjacency:
    """Links between places (…, device, 2) that are no further apart than `radius`."""
    x, y = positions[..., 0], positions[..., 1]
    squared = (x[..., :, None] - x[..., None, :]) ** 2 + (y[..., :, None] - y[..., None, :]) ** 2
    return (squared <= radius**2) & ~np.eye(positions.shape[-2], dtype=bool)


def is_connected(adjacency: np.ndarray) -> np.ndarray:
    """Whether each graph of (…, device, device) is connected.

    Each squaring of the reachability matrix doubles the length of the paths that it knows.
    """
    devices = adjacency.shape[-1]
    reach = (adjacency | np.eye(devices, dtype=bool)).astype(np.float32)
    for _ in range(max(1, (devices - 1).bit_length())):
        reach = np.minimum(reach @ reach, 1)
    return np.asarray(reach[..., 0, :].all(-1))


def _likely_connectivity(devices: int) -> float:
    """The radius at which a random geometric graph starts to be connected, with some room."""
    return min(1.5, 1.1 * float(np.sqrt(np.log(max(devices, 2)) / (np.pi * devices))))
