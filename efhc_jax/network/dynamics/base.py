"""The type of all dynamics: networks that change from iteration to iteration.

Random numbers are hashes of the seed, the iteration and the link, so they are the same at both ends of a
link and independent of the rest of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from efhc_jax.network.geometry import Links
from efhc_jax.network.slots import Neighbors, Network, behind_slots, devices_of, link_numbers, of_rows
from efhc_jax.network.topologies import NetworkSettings
from efhc_jax.randomness.draws import random_words, uniform
from efhc_jax.randomness.streams import Stream

Memory = Any  # a tree of arrays


class Snapshot(NamedTuple):
    """The network in one iteration.

    Attributes:
        links: A(k).
        neighbors: the devices in the slots; None for a matrix.
        training: devices that take a gradient step.
        previous: A(k−1) in the slots of this iteration, if these are not those of the last one.
    """

    links: Bool[Array, "row slot"]
    neighbors: Neighbors
    training: Bool[Array, "device"]
    previous: Bool[Array, "row slot"] | None = None


class NetworkValues(NamedTuple):
    """The values of a run's network."""

    key: Key[Array, ""]  # of the run
    adjacency: Bool[Array, "row slot"]  # all links of the graph; the dynamics decide which are up
    neighbors: Neighbors  # the devices in the slots; None for a matrix
    drawn: Any  # by the dynamics on the host, a tree of arrays

    @property
    def devices(self) -> int:
        """Number of devices, m."""
        return devices_of(Network(self.adjacency, self.neighbors))


class Drawing(NamedTuple):
    """The settings and links that dynamics can use on the host, once per run."""

    settings: NetworkSettings
    parameters: Any
    seed: int
    links: Links  # (link, 2)
    network: Network  # the same links in slots


class Drawn(NamedTuple):
    """Values that dynamics draw on the host."""

    values: Any = ()  # a tree of arrays
    links: np.ndarray | None = None  # (row, slot), the links to begin with, if not all


class Dynamics(NamedTuple):
    """Changes of a network over time.

    Attributes:
        at: function from the network, the parameters, the memory and k to the `Snapshot` of iteration k
            and the memory for the next. It is traced into the compiled program.
        init: function from the network and the parameters to the memory before the first iteration, any
            tree of arrays; None for dynamics without memory.
        parameters: frozen dataclass of its own parameters, or None.
        draw: function from a `Drawing` to what it draws on the host, or None.
        fit: function from the values that several runs have drawn, their networks, and the same
            networks padded to equal shapes, to values of equal shapes; None if all shapes are equal.
        room: function from the settings to the largest number of neighbours, if it is not that of the
            graph.
        links: function from the settings to all links, instead of those of the experiment's graph.
        graphs: the only graphs that it can be combined with; None for all.
        problem: function from the memory to what is wrong with the run, in words, or an empty text.
        fixed: whether the network is the same in all iterations; what depends on it alone is then
            computed once.
    """

    at: Callable[[NetworkValues, Any, Memory, Int[Array, ""]], tuple[Snapshot, Memory]]
    init: Callable[[NetworkValues, Any], Memory] | None = None
    parameters: type | None = None
    draw: Callable[[Drawing], Drawn] | None = None
    fit: Callable[[Sequence[Any], Sequence[Network], Sequence[Network]], list[Any]] | None = None
    room: Callable[[NetworkSettings], int] | None = None
    links: Callable[[NetworkSettings], Links] | None = None
    graphs: tuple[str, ...] | None = None
    problem: Callable[[Memory], str] | None = None
    fixed: bool = False


def first_memory(dynamics: Dynamics, network: NetworkValues, parameters: Any) -> Memory:
    """The memory before the first iteration; an empty tuple if there is none."""
    return () if dynamics.init is None else dynamics.init(network, parameters)


def everybody(network: NetworkValues) -> Bool[Array, "device"]:
    """All devices."""
    return jnp.ones(network.devices, bool)


def with_links(network: NetworkValues, links: Bool[Array, "row slot"]) -> Snapshot:
    """A snapshot with all devices, in the slots of the run."""
    return Snapshot(links, network.neighbors, everybody(network))


def links_among(network: NetworkValues, present: Bool[Array, "device"]) -> Bool[Array, "row slot"]:
    """The links of the graph whose ends are both present."""
    both = of_rows(present, network.neighbors) & behind_slots(present, network.neighbors)
    return network.adjacency & both


def link_coins(network: NetworkValues, iteration: Int[Array, ""]) -> Float[Array, "row slot"]:
    """A random number for every link, uniform on [0, 1), the same at both ends."""
    numbers = link_numbers(network.devices, network.neighbors)
    words = random_words(network.key, Stream.NETWORK, iteration, numbers.ravel())
    return uniform(words).reshape(numbers.shape)
