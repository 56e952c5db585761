"""Physical networks.

A topology is a function of the network's settings and a random generator. It returns the links of a
connected graph, each once, as an array (link, 2) of device indices with the smaller one first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from efhc_jax.errors import DataError, ExperimentError
from efhc_jax.network.graph_files import read_graphs

MAX_DRAWS = 1_000_000
_BLOCK_ELEMENTS = 1 << 19  # draws are checked in blocks of about this many matrix entries
_MOST_RANDOM_GRAPHS = 2_000
_SMALL = 200  # devices up to which all pairs are compared

Links = np.ndarray  # int (link, 2)


class NetworkSettings(NamedTuple):
    """Parameters of all topologies; each uses some of them."""

    devices: int
    connectivity: float
    placement: float  # the radius at which random positions must be connected
    graph_file: str = ""


Topology = Callable[[NetworkSettings, np.random.Generator], Links]


def geometric(settings: NetworkSettings, rng: np.random.Generator) -> Links:
    """Devices at random positions in the unit square, linked within distance `connectivity`.

    Positions are redrawn until they are connected at distance `placement`: runs with the same
    `placement` and generator have the same positions, and their graphs are nested.

    Raises:
        ExperimentError: no connected graph in a million draws.
    """
    return links_within(connected_places(settings, rng), settings.connectivity)


class Degrees(NamedTuple):
    """Degrees of a graph."""

    mean: float
    largest: int


def expected_degrees(graph: str, settings: NetworkSettings) -> Degrees | None:
    """Approximate degrees of a graph, before it is drawn; None for a user's own topology.

    In random graphs a degree is about normal, and the largest of m normal values is about √(2·ln m)
    standard deviations above the mean.

    Raises:
        DataError: the graph file cannot be read.

    Example:
        >>> expected_degrees("star", NetworkSettings(1000, 0.4, 0.4))
        Degrees(mean=1.998, largest=999)
    """
    devices, connectivity = settings.devices, settings.connectivity
    others = devices - 1
    if graph == "file":
        degrees = np.bincount(from_file(settings, np.random.default_rng()).ravel(), minlength=devices)
        return Degrees(float(degrees.mean()), int(degrees.max()))
    if graph in ("geometric", "erdos_renyi"):
        density = min(1.0, math.pi * connectivity**2 if graph == "geometric" else connectivity)
        mean = density * others
        spread = math.sqrt(2 * math.log(max(devices, 2)) * mean * (1 - density))
        return Degrees(mean, min(others, math.ceil(mean + spread)))
    powers = max(1, others.bit_length())
    known = {
        "ring": (2.0, 2),
        "complete": (others, others),
        "star": (2 * others / devices, others),
        "grid": (4.0, 4),
        "exponential": (2 * powers, 2 * powers),
        "watts_strogatz": (4.0, 4 + math.ceil(math.log(devices))),
        "barabasi_albert": (4.0, math.ceil(2 * math.sqrt(devices))),
    }
    if graph not in known:
        return None
    mean, largest = known[graph]
    return Degrees(min(mean, others), min(largest, others))


def ring(settings: NetworkSettings, rng: np.random.Generator) -> Links:
    """Each device linked to the next, the last to the first."""
    devices = np.arange(settings.devices)
    return _unique(np.stack([devices, np.roll(devices, -1)], axis=1))


def complete(settings: NetworkSettings, rng: np.random.Generator) -> Links:
    """Every device linked to every other."""
    return np.stack(np.triu_indices(settings.devices, 1), axis=1)


def star(settings: NetworkSettings, rng: np.random.Generator) -> Links:
    """Every device linked only to device 0."""
    others = np.arange(1, settings.devices)
    return np.stack([np.zeros_like(others), others], axis=1)


def grid(settings: NetworkSettings, rng: np.random.Generator) -> Links:
    """Devices on a grid, as square as possible, linked to the next in their row and column."""
    devices = settings.devices
    rows = next(size for size in range(math.isqrt(devices), 0, -1) if devices % size == 0)
    places = np.arange(devices).reshape(rows, -1)
    across = np.stack([places[:, :-1].ravel(), places[:, 1:].ravel()], axis=1)
    down = np.stack([places[:-1].ravel(), places[1:].ravel()], axis=1)
    return _unique(np.concatenate([across, down]))


def exponential(settings: NetworkSettings, rng: np.random.Generator) -> Links:
    """Device i linked to i + 1, i + 2, i + 4, … around a ring."""
    devices = np.arange(settings.devices)
    hops = [1 << power for power in range(max(1, (settings.devices - 1).bit_length()))]
    pairs = [np.stack([devices, (devices + hop) % settings.devices], axis=1) for hop in hops]
    return _unique(np.concatenate(pairs))


def erdos_renyi(settings: NetworkSettings, rng: np.random.Generator) -> Links:
    """Any two devices linked with probability `connectivity`; redrawn until connected."""
    import networkx

    probability = min(settings.connectivity, 1.0)
    for _ in range(_MOST_RANDOM_GRAPHS):
        graph = networkx.gnp_random_graph(settings.devices, probability, seed=_networkx_seed(rng))
        if networkx.is_connected(graph):
            return _links_of(graph)
    likely = min(1.0, 2 * math.log(settings.devices) / settings.devices)
    raise ExperimentError(
        f"connectivity={settings.connectivity:g}: no connected graph in {_MOST_RANDOM_GRAPHS:,} draws "
        f"for {settings.devices} devices; try {likely:.2g} or more"
    )


def watts_strogatz(settings: NetworkSettings, rng: np.random.Generator) -> Links:
    """A ring with four neighbours per device, with links rewired with probability `connectivity`."""
    import networkx

    neighbors = min(4, settings.devices - 1)
    if neighbors < 2:
        return complete(settings, rng)
    probability = min(settings.connectivity, 1.0)
    return _links_of(
        networkx.connected_watts_strogatz_graph(
            settings.devices, neighbors, probability, tries=_MOST_RANDOM_GRAPHS, seed=_networkx_seed(rng)
        )
    )


def barabasi_albert(settings: NetworkSettings, rng: np.random.Generator) -> Links:
    """Devices join one by one and link to two earlier ones, preferably those with many links."""
    import networkx

    if settings.devices <= 2:
        return complete(settings, rng)
    return _links_of(networkx.barabasi_albert_graph(settings.devices, 2, seed=_networkx_seed(rng)))


def from_file(settings: NetworkSettings, rng: np.random.Generator) -> Links:
    """The graph of a file.

    Raises:
        DataError: the file cannot be read, or has several graphs over time.
    """
    graphs = read_graphs(settings.graph_file, settings.devices)
    if len(graphs.links) > 1:
        raise DataError(
            f"graph_file={settings.graph_file}: has {len(graphs.links)} graphs over time; "
            "run them with dynamics='trace'"
        )
    return graphs.links[0]


def from_networkx(graph: Any) -> Topology:
    """A topology from a NetworkX graph; its nodes become devices in order.

    Args:
        graph: any graph; directions, weights and self-loops are ignored.

    Example:
        >>> import networkx
        >>> GRAPHS["wheel"] = from_networkx(networkx.wheel_graph(10))
        >>> len(GRAPHS.pop("wheel")(NetworkSettings(10, 0.4, 0.4), np.random.default_rng(0)))
        18
    """
    if not hasattr(graph, "nodes") or not hasattr(graph, "edges"):
        raise ExperimentError(f"from_networkx: {type(graph).__name__} is not a NetworkX graph")
    number = {node: device for device, node in enumerate(graph.nodes)}
    links = [(number[one], number[other]) for one, other in graph.edges()]
    fixed = _unique(np.array(links, int).reshape(-1, 2))

    def topology(settings: NetworkSettings, rng: np.random.Generator) -> Links:
        if settings.devices != len(number):
            raise ExperimentError(
                f"devices={settings.devices}: the graph has {len(number)} nodes; give that number"
            )
        return fixed

    return topology


GRAPHS: dict[str, Topology] = {
    "geometric": geometric,
    "ring": ring,
    "complete": complete,
    "star": star,
    "grid": grid,
    "exponential": exponential,
    "erdos_renyi": erdos_renyi,
    "watts_strogatz": watts_strogatz,
    "barabasi_albert": barabasi_albert,
    "file": from_file,
}


def checked_links(links: Any, devices: int, source: str, allow_disconnected: bool = False) -> Links:
    """The links of a topology in canonical form: each once, smaller device first, sorted.

    Args:
        links: the links that the topology returned.
        devices: m of the experiment.
        source: their source for error messages, such as `graph='mine'`.
        allow_disconnected: whether the graph may be disconnected.

    Raises:
        ExperimentError: they are not links, name a device that does not exist, or are not connected.
    """
    pairs = np.asarray(links)
    if pairs.size == 0:
        pairs = np.zeros((0, 2), int)
    square = pairs.ndim == 2 and pairs.shape[0] == pairs.shape[1]
    if square and (len(pairs) > 2 or pairs.dtype == bool):
        raise ExperimentError(
            f"{source}: gave an adjacency matrix {pairs.shape} instead of links (link, 2); "
            "return np.argwhere(np.triu(adjacency)) instead"
        )
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        raise ExperimentError(
            f"{source}: gave {pairs.dtype} {pairs.shape}; return links as pairs of device indices, "
            "integers (link, 2)"
        )
    outside = pairs[(pairs < 0) | (pairs >= devices)]
    if outside.size:
        raise ExperimentError(
            f"{source}: has a link to device {outside[0]}, but the {devices} devices are 0 to "
            f"{devices - 1}; set devices={max(int(pairs.max()) + 1, 1)}, or leave the link out"
        )
    pairs = _unique(pairs)
    if not allow_disconnected:
        _check_connected(pairs, devices, source)
    return pairs


def _check_connected(links: Links, devices: int, source: str) -> None:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(links), np.int8)
    graph = coo_array((ones, (links[:, 0], links[:, 1])), shape=(devices, devices))
    count, component = connected_components(graph, directed=False)
    if count > 1:
        sizes = np.sort(np.bincount(component))[::-1]
        shown = ", ".join(map(str, sizes[:5])) + (", …" if count > 5 else "")
        apart = int(np.flatnonzero(component != component[0])[0])
        raise ExperimentError(
            f"{source}: is not connected; its {count} components have {shown} devices, and device "
            f"{apart} is not reached from device 0; add links, or set allow_disconnected=True"
        )


def connected_places(settings: NetworkSettings, rng: np.random.Generator) -> np.ndarray:
    """Random positions (device, 2) that are connected at distance `placement`.

    Sparse graphs are rarely connected (one draw in 6,000 for ten devices at 0.2), so small ones are
    checked in blocks of draws, with the cheapest test first.
    """
    devices, radius = settings.devices, settings.placement
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
    return _unique(pairs)


def within(places: np.ndarray, radius: float) -> np.ndarray:
    """Adjacency (…, device, device) of positions (…, device, 2) within distance `radius`."""
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


def _links_of(graph: Any) -> Links:
    """The links of a NetworkX graph whose nodes are integers from 0."""
    return _unique(np.array(list(graph.edges), int).reshape(-1, 2))


def _networkx_seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


def _unique(links: np.ndarray) -> Links:
    """Each link once, smaller device first, sorted, without self-loops."""
    links = np.sort(links[links[:, 0] != links[:, 1]], axis=1)
    return np.unique(links, axis=0).reshape(-1, 2)


def _likely_connectivity(devices: int) -> float:
    """The radius from which a random geometric graph is likely to be connected, with a margin."""
    return min(1.5, 1.1 * float(np.sqrt(np.log(max(devices, 2)) / (np.pi * devices))))
