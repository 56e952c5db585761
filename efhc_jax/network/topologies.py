"""Physical networks.

A topology is a function of the network's settings and a random generator. It returns the links of a
connected graph, each once, as an array (link, 2) of device indices with the smaller one first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from efhc_jax.errors import DataError, ExperimentError
from efhc_jax.members import Registry, make_parameters, parameter, said_of_member
from efhc_jax.network.geometry import Links, connected_places, links_within, unique
from efhc_jax.network.graph_files import read_graphs

_MOST_RANDOM_GRAPHS = 2_000


class NetworkSettings(NamedTuple):
    """Parameters of all topologies; each uses some of them."""

    devices: int
    connectivity: float
    placement: float  # the radius at which random positions must be connected
    graph_file: str = ""
    iterations: int | None = None


Topology = Callable[..., Links]


class Graph(NamedTuple):
    """A family of physical networks.

    A plain function of the settings and a generator can be registered instead.

    Attributes:
        draw: function from the settings and a random generator to the links; with `parameters`, these
            are its third argument.
        parameters: frozen dataclass of its own parameters, or None.
        uses: the shared settings that it uses, of connectivity, placement and allow_disconnected; None
            if unknown. Others are errors, because they would have no effect.
    """

    draw: Topology
    parameters: type | None = None
    uses: tuple[str, ...] | None = None


@dataclass(frozen=True)
class WattsStrogatz:
    """Parameters of the graph `watts_strogatz`."""

    neighbors: int = parameter(4, "Number of neighbours in the ring before links are rewired.", low=2)


@dataclass(frozen=True)
class BarabasiAlbert:
    """Parameters of the graph `barabasi_albert`."""

    links: int = parameter(2, "Number of links of each device that joins.", low=1)


def geometric(settings: NetworkSettings, rng: np.random.Generator) -> Links:
    """Devices at random positions in the unit square, linked within distance `connectivity`.

    Positions are redrawn until they are connected at distance `placement`: runs with the same
    `placement` and generator have the same positions, and their graphs are nested.

    Raises:
        ExperimentError: no connected graph in a million draws.
    """
    return links_within(
        connected_places(settings.devices, settings.placement, rng), settings.connectivity
    )


def expected_degrees(graph: str, settings: NetworkSettings, parameters: Any = None) -> np.ndarray | None:
    """Approximate degrees (device,) of a graph before it is drawn; None for a user's own topology.

    In random graphs a degree is about normal, and the largest of m normal values is about √(2·ln m)
    standard deviations above the mean. In Barabási-Albert graphs, that of the i-th device is about
    √(m/i) times the number of links of each device that joins.

    Raises:
        DataError: the graph file cannot be read.

    Example:
        >>> expected_degrees("star", NetworkSettings(5, 0.4, 0.4))
        array([4, 1, 1, 1, 1])
    """
    devices, connectivity = settings.devices, settings.connectivity
    others = devices - 1
    if not GRAPHS.is_built_in(graph):
        return None
    if graph == "file":
        links = from_file(settings, np.random.default_rng())
        return np.bincount(links.ravel(), minlength=devices)
    if graph in ("geometric", "erdos_renyi"):
        density = min(1.0, math.pi * connectivity**2 if graph == "geometric" else connectivity)
        mean = density * others
        spread = math.sqrt(2 * math.log(max(devices, 2)) * mean * (1 - density))
        return _even_degrees(devices, mean, math.ceil(mean + spread))
    if isinstance(parameters, BarabasiAlbert):
        rank = np.arange(1, devices + 1)
        return np.minimum(np.ceil(parameters.links * np.sqrt(devices / rank)).astype(int), others)
    if isinstance(parameters, WattsStrogatz):
        neighbors = parameters.neighbors
        return _even_degrees(devices, float(neighbors), neighbors + math.ceil(math.log(devices)))
    if graph == "star":
        return np.append(others, np.ones(others, int))
    powers = max(1, others.bit_length())
    known = {"ring": 2, "complete": others, "grid": 4, "exponential": 2 * powers}
    return _even_degrees(devices, float(known[graph]), known[graph])


def _even_degrees(devices: int, mean: float, largest: int) -> np.ndarray:
    """Equal degrees, except for one device that has the largest."""
    degrees = np.full(devices, min(round(mean), devices - 1))
    degrees[0] = min(largest, devices - 1)
    return degrees


def ring(settings: NetworkSettings, rng: np.random.Generator) -> Links:
    """Each device linked to the next, the last to the first."""
    devices = np.arange(settings.devices)
    return unique(np.stack([devices, np.roll(devices, -1)], axis=1))


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
    return unique(np.concatenate([across, down]))


def exponential(settings: NetworkSettings, rng: np.random.Generator) -> Links:
    """Device i linked to i + 1, i + 2, i + 4, … around a ring."""
    devices = np.arange(settings.devices)
    hops = [1 << power for power in range(max(1, (settings.devices - 1).bit_length()))]
    pairs = [np.stack([devices, (devices + hop) % settings.devices], axis=1) for hop in hops]
    return unique(np.concatenate(pairs))


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


def watts_strogatz(
    settings: NetworkSettings, rng: np.random.Generator, parameters: WattsStrogatz
) -> Links:
    """A ring with some neighbours per device, with links rewired with probability `connectivity`."""
    import networkx

    neighbors = min(parameters.neighbors, settings.devices - 1)
    if neighbors < 2:
        return complete(settings, rng)
    probability = min(settings.connectivity, 1.0)
    return _links_of(
        networkx.connected_watts_strogatz_graph(
            settings.devices, neighbors, probability, tries=_MOST_RANDOM_GRAPHS, seed=_networkx_seed(rng)
        )
    )


def barabasi_albert(
    settings: NetworkSettings, rng: np.random.Generator, parameters: BarabasiAlbert
) -> Links:
    """Devices join one by one and link to some earlier ones, preferably those with many links."""
    import networkx

    devices, links = settings.devices, parameters.links
    if devices <= links:
        return complete(settings, rng)
    return _links_of(networkx.barabasi_albert_graph(devices, links, seed=_networkx_seed(rng)))


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
        >>> wheel = from_networkx(networkx.wheel_graph(10))
        >>> len(wheel(NetworkSettings(10, 0.4, 0.4), np.random.default_rng(0)))
        18
    """
    if not hasattr(graph, "nodes") or not hasattr(graph, "edges"):
        raise ExperimentError(f"from_networkx: {type(graph).__name__} is not a NetworkX graph")
    number = {node: device for device, node in enumerate(graph.nodes)}
    links = [(number[one], number[other]) for one, other in graph.edges()]
    fixed = unique(np.array(links, int).reshape(-1, 2))

    def topology(settings: NetworkSettings, rng: np.random.Generator) -> Links:
        if settings.devices != len(number):
            raise ExperimentError(
                f"devices={settings.devices}: the graph has {len(number)} nodes; give that number"
            )
        return fixed

    return topology


_RADIUS = ("connectivity", "placement")
_PROBABILITY = ("connectivity",)

GRAPHS: Registry[Graph | Topology] = Registry(
    {
        "geometric": Graph(geometric, uses=_RADIUS),
        "ring": Graph(ring, uses=()),
        "complete": Graph(complete, uses=()),
        "star": Graph(star, uses=()),
        "grid": Graph(grid, uses=()),
        "exponential": Graph(exponential, uses=()),
        "erdos_renyi": Graph(erdos_renyi, uses=_PROBABILITY),
        "watts_strogatz": Graph(watts_strogatz, WattsStrogatz, uses=_PROBABILITY),
        "barabasi_albert": Graph(barabasi_albert, BarabasiAlbert, uses=()),
        "file": Graph(from_file, uses=("allow_disconnected",)),
    }
)


def draw_links(
    name: str, settings: NetworkSettings, rng: np.random.Generator, parameters: Any = None
) -> Any:
    """Whatever the topology of this name returns, by default with its default parameters."""
    entry = GRAPHS[name]
    draw = entry.draw if isinstance(entry, Graph) else entry
    own = make_parameters(entry, {}) if parameters is None else parameters
    with said_of_member(f"graph={name!r}", "its function"):
        return draw(settings, rng) if own is None else draw(settings, rng, own)


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
    pairs = unique(pairs)
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


def _links_of(graph: Any) -> Links:
    """The links of a NetworkX graph whose nodes are integers from 0."""
    return unique(np.array(list(graph.edges), int).reshape(-1, 2))


def _networkx_seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))
