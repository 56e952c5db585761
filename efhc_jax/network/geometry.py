"""Positions of devices in the unit square, and links between those that are near."""

from __future__ import annotations

from typing import Any

import numpy as np

from efhc_jax.errors import ExperimentError

MAX_DRAWS = 1_000_000
_BLOCK_ELEMENTS = 1 << 19  # draws are checked in blocks of about this many matrix entries
_SMALL = 200  # devices up to which all pairs are compared

Links = np.ndarray  # int (link, 2)


def connected_places(devices: int, radius: float, rng: np.random.Generator) -> np.ndarray:
    """Random positions (device, 2) that are connected at distance `radius`.

    Sparse graphs are rarely connected (one draw in 6,000 for ten devices at 0.2), so small ones are
    checked in blocks of draws, with the cheapest test first.
    """
    draws = 0
    block = max(1, _BLOCK_ELEMENTS // devices**2) if devices <= _SMALL else 1
    limit = MAX_DRAWS if devices <= _SMALL else 1_000
    while draws < limit:
        places = rng.random((block, devices, 2))
        found = _connected_draw(places, radius)
        if found is not None:
            return places[found]
        draws += block
    raise ExperimentError(
        f"connectivity={radius:g}: no connected graph in {limit:,} draws for {devices} "
        f"devices; try {_likely_connectivity(devices):.2g} or more"
    )


def links_within(places: np.ndarray, radius: float) -> Links:
    """Links between positions (device, 2) within distance `radius`."""
    if len(places) <= _SMALL:
        return np.argwhere(np.triu(within(places, radius)))
    from scipy.spatial import KDTree

    pairs = KDTree(places).query_pairs(radius, output_type="ndarray")
    return unique(pairs)


def within(places: Any, radius: Any) -> Any:
    """Adjacency (…, device, device) of positions (…, device, 2) within distance `radius`.

    Arrays may be those of NumPy or JAX.
    """
    x, y = places[..., 0], places[..., 1]
    squared = (x[..., :, None] - x[..., None, :]) ** 2 + (y[..., :, None] - y[..., None, :]) ** 2
    return (squared <= radius**2) & ~np.eye(places.shape[-2], dtype=bool)


def is_connected(adjacency: np.ndarray) -> np.ndarray:
    """Whether each graph of (…, device, device) is connected.

    Each squaring of the reachability matrix doubles the length of the paths that it covers.
    """
    devices = adjacency.shape[-1]
    reach = (adjacency | np.eye(devices, dtype=bool)).astype(np.float32)
    for _ in range(max(1, (devices - 1).bit_length())):
        reach = np.minimum(reach @ reach, 1)
    return np.asarray(reach[..., 0, :].all(-1))


def _connected_draw(places: np.ndarray, radius: float) -> int | None:
    """The first of several draws (draw, device, 2) that is connected."""
    draws, devices, _ = places.shape
    if devices > _SMALL:
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        links = links_within(places[0], radius)
        graph = coo_array((np.ones(len(links)), (links[:, 0], links[:, 1])), shape=(devices, devices))
        return 0 if connected_components(graph, directed=False)[0] == 1 else None
    adjacency = within(places, radius)
    without_isolated = np.flatnonzero(adjacency.any(-1).all(-1)) if devices > 1 else np.arange(draws)
    connected = without_isolated[is_connected(adjacency[without_isolated])]
    return int(connected[0]) if connected.size else None


def _likely_connectivity(devices: int) -> float:
    """The radius from which a random geometric graph is likely to be connected, with a margin."""
    return min(1.5, 1.1 * float(np.sqrt(np.log(max(devices, 2)) / (np.pi * devices))))


def unique(links: np.ndarray) -> Links:
    """Each link once, smaller device first, sorted, without self-loops."""
    links = np.sort(links[links[:, 0] != links[:, 1]], axis=1)
    return np.unique(links, axis=0).reshape(-1, 2)
