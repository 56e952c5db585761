"""Networks that change: the links that are up in iteration k, and the devices that are present.

A dynamics is a pair of pure functions. `init` returns its memory before the first iteration; `at`
returns the network of an iteration and the memory for the next. Both are traced into the compiled
program. Random numbers are hashes of the seed, the iteration and the link, so they are the same at both
ends of a link and independent of the rest of the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from efhc_jax.network.proximity import among, near_lists
from efhc_jax.network.slots import behind_slots, link_numbers
from efhc_jax.randomness.draws import random_words, uniform
from efhc_jax.randomness.streams import Stream

Memory = dict[str, Array]


class Snapshot(NamedTuple):
    """The network in one iteration.

    Attributes:
        links: A(k).
        neighbors: the devices in the slots; None for a matrix.
        present: devices that are present.
        previous: A(k−1) in the slots of this iteration, if these are not those of the last one.
    """

    links: Bool[Array, "device slot"]
    neighbors: Int[Array, "device slot"] | None
    present: Bool[Array, "device"]
    previous: Bool[Array, "device slot"] | None = None


Now = tuple[Snapshot, Memory]


class DynamicsValues(NamedTuple):
    """Parameters of all dynamics; each uses some of them."""

    link_up: Float[Array, ""]
    link_failure: Float[Array, ""]
    link_repair: Float[Array, ""]
    period: Int[Array, ""]
    turn: Int[Array, "device slot"]  # the iteration of a period in which each link is up
    speed: Float[Array, ""]
    radius: Float[Array, ""]
    places: Float[Array, "device 2"]
    leave: Float[Array, ""]
    come_back: Float[Array, ""]
    graphs: tuple[Int[Array, "graph"], Bool[Array, "graph device slot"]]  # first iterations and links


class NetworkValues(NamedTuple):
    """The values of a run's network."""

    key: Key[Array, ""]  # of the run
    adjacency: Bool[Array, "device slot"]  # all links of the graph; the dynamics decide which are up
    neighbors: Int[Array, "device slot"] | None  # the devices in the slots; None for a matrix
    dynamics: DynamicsValues

    @property
    def devices(self) -> int:
        """Number of devices, m."""
        return self.adjacency.shape[0]


class Dynamics(NamedTuple):
    """Changes of a network over time.

    Attributes:
        init: function from the values of a network to the memory before its first iteration.
        at: function from the values, the memory and k to the network in iteration k and the memory for
            the next.
    """

    init: Callable[[NetworkValues], Memory]
    at: Callable[[NetworkValues, Memory, Int[Array, ""]], Now]


def _nothing(network: NetworkValues) -> Memory:
    return {}


def _everybody(network: NetworkValues) -> Bool[Array, "device"]:
    return jnp.ones(network.devices, bool)


def _unmoved(network: NetworkValues, links: Bool[Array, "device slot"]) -> Snapshot:
    """A snapshot with all devices, in the slots of the run."""
    return Snapshot(links, network.neighbors, _everybody(network))


def _static(network: NetworkValues, memory: Memory, iteration: Int[Array, ""]) -> Now:
    """The graph, unchanged."""
    return _unmoved(network, network.adjacency), memory


def _failures(network: NetworkValues, memory: Memory, iteration: Int[Array, ""]) -> Now:
    """Each link is up with probability `link_up`, independently of all others and of the past."""
    up = _link_coins(network, iteration) < network.dynamics.link_up
    return _unmoved(network, network.adjacency & up), memory


def _markov_init(network: NetworkValues) -> Memory:
    """Links start in the stationary distribution: up with probability repair / (repair + failure)."""
    failure, repair = network.dynamics.link_failure, network.dynamics.link_repair
    often = repair / jnp.maximum(failure + repair, jnp.finfo(repair.dtype).tiny)
    return {"up": _link_coins(network, jnp.int32(-1)) < often}


def _markov(network: NetworkValues, memory: Memory, iteration: Int[Array, ""]) -> Now:
    """Links that are up fail with one probability, those that are down are repaired with another."""
    coins, up = _link_coins(network, iteration), memory["up"]
    stays = coins >= network.dynamics.link_failure
    comes_back = coins < network.dynamics.link_repair
    following = jnp.where(up, stays, comes_back)
    return _unmoved(network, network.adjacency & up), {"up": following}


def _periodic(network: NetworkValues, memory: Memory, iteration: Int[Array, ""]) -> Now:
    """Links take turns: in any `period` iterations, each link is up once."""
    up = iteration % network.dynamics.period == network.dynamics.turn
    return _unmoved(network, network.adjacency & up), memory


def _mobility_init(network: NetworkValues) -> Memory:
    places = network.dynamics.places
    memory = {"places": places, "targets": _waypoints(network, jnp.int32(-1))}
    if network.neighbors is None:
        return memory
    lists, missed = near_lists(places, network.dynamics.radius, network.neighbors.shape[1])
    return memory | {"lists": lists, "missed": missed}


def _mobility(network: NetworkValues, memory: Memory, iteration: Int[Array, ""]) -> Now:
    """Random waypoint: devices move to a random position, then to another; links are by distance."""
    places, targets = memory["places"], memory["targets"]
    way = targets - places
    distance = jnp.sqrt(jnp.sum(way**2, axis=1, keepdims=True))
    arrives = distance <= network.dynamics.speed
    stride = jnp.where(arrives, way, way * (network.dynamics.speed / jnp.maximum(distance, 1e-9)))
    following = {
        "places": places + stride,
        "targets": jnp.where(arrives, _waypoints(network, iteration), targets),
    }
    if network.neighbors is None:
        return _unmoved(network, _near(places, network.dynamics.radius)), following
    devices, slots = network.neighbors.shape
    lists, missed = near_lists(places, network.dynamics.radius, slots)
    links = lists < devices
    neighbors = jnp.where(links, lists, jnp.arange(devices, dtype=lists.dtype)[:, None])
    following |= {"lists": lists, "missed": memory["missed"] + missed}
    previous = links & among(lists, memory["lists"])
    return Snapshot(links, neighbors, _everybody(network), previous), following


def _near(places: Float[Array, "device 2"], radius: Float[Array, ""]) -> Bool[Array, "device device"]:
    x, y = places[:, 0], places[:, 1]
    squared = (x[:, None] - x) ** 2 + (y[:, None] - y) ** 2
    return (squared <= radius**2) & ~jnp.eye(len(x), dtype=bool)


def _churn_init(network: NetworkValues) -> Memory:
    return {"present": _everybody(network)}


def _churn(network: NetworkValues, memory: Memory, iteration: Int[Array, ""]) -> Now:
    """Devices leave and come back; a link is up if both ends are present."""
    present = memory["present"]
    devices = present.shape[0]
    coins = uniform(random_words(network.key, Stream.NETWORK, iteration, jnp.arange(devices)))
    stays, returns = coins >= network.dynamics.leave, coins < network.dynamics.come_back
    following = jnp.where(present, stays, returns)
    both = present[:, None] & behind_slots(present, network.neighbors)
    return Snapshot(network.adjacency & both, network.neighbors, present), {"present": following}


def _trace(network: NetworkValues, memory: Memory, iteration: Int[Array, ""]) -> Now:
    """The graphs of a file, each from its time until that of the next."""
    times, links = network.dynamics.graphs
    newest = jnp.searchsorted(times, iteration, side="right") - 1
    return _unmoved(network, links[newest]), memory


DYNAMICS: dict[str, Dynamics] = {
    "static": Dynamics(_nothing, _static),
    "failures": Dynamics(_nothing, _failures),
    "markov": Dynamics(_markov_init, _markov),
    "periodic": Dynamics(_nothing, _periodic),
    "mobility": Dynamics(_mobility_init, _mobility),
    "churn": Dynamics(_churn_init, _churn),
    "trace": Dynamics(_nothing, _trace),
}


def _link_coins(network: NetworkValues, iteration: Int[Array, ""]) -> Float[Array, "device slot"]:
    numbers = link_numbers(network.devices, network.neighbors)
    words = random_words(network.key, Stream.NETWORK, iteration, numbers.ravel())
    return uniform(words).reshape(numbers.shape)


def _waypoints(network: NetworkValues, iteration: Int[Array, ""]) -> Float[Array, "device 2"]:
    shape = network.dynamics.places.shape
    positions = jnp.arange(shape[0] * 2)
    return uniform(random_words(network.key, Stream.NETWORK, iteration, positions)).reshape(shape)
