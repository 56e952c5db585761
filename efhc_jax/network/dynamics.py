"""Networks that change: the links that are up in iteration k, and the devices that are present.

A dynamics is a pair of pure functions. `begin` returns its memory before the first iteration; `at`
returns the network of an iteration and the memory for the next. Both are traced into the compiled
program. Random numbers are hashes of the seed, the iteration and the link, so they are the same at both
ends of a link and independent of the rest of the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from efhc_jax.network.proximity import among, near_lists
from efhc_jax.network.slots import behind_slots, link_numbers
from efhc_jax.randomness.draws import random_words, uniform
from efhc_jax.randomness.streams import Stream

if TYPE_CHECKING:
    from efhc_jax.runs.prepare import Hyper

Memory = dict[str, Array]


class Now(NamedTuple):
    """The network in one iteration.

    Attributes:
        links: A(k), in the slots of the run, or in those of `moved`.
        present: devices that are present.
        memory: memory for the next iteration.
        moved: neighbours of this iteration, if they are not those of the run.
    """

    links: Bool[Array, "device slot"]
    present: Bool[Array, "device"]
    memory: Memory
    moved: Moved | None = None


class Moved(NamedTuple):
    """Neighbour lists of one iteration."""

    neighbors: Int[Array, "device slot"]
    before: Bool[Array, "device slot"]  # A(k−1), in the slots of this iteration


class Dynamics(NamedTuple):
    """Changes of a network over time.

    Attributes:
        begin: function from the values of a run to the memory before its first iteration.
        at: function from the values, the memory and k to the network in iteration k.
    """

    begin: Callable[[Hyper], Memory]
    at: Callable[[Hyper, Memory, Int[Array, ""]], Now]


def _nothing(hyper: Hyper) -> Memory:
    return {}


def _everybody(hyper: Hyper) -> Bool[Array, "device"]:
    return jnp.ones(hyper.bandwidth.shape[0], bool)


def _static(hyper: Hyper, memory: Memory, iteration: Int[Array, ""]) -> Now:
    """The graph, unchanged."""
    return Now(hyper.adjacency, _everybody(hyper), memory)


def _failures(hyper: Hyper, memory: Memory, iteration: Int[Array, ""]) -> Now:
    """Each link is up with probability `link_up`, independently of all others and of the past."""
    up = _link_coins(hyper, iteration) < hyper.change.link_up
    return Now(hyper.adjacency & up, _everybody(hyper), memory)


def _markov_begin(hyper: Hyper) -> Memory:
    """Links start in the stationary distribution: up with probability repair / (repair + failure)."""
    failure, repair = hyper.change.link_failure, hyper.change.link_repair
    often = repair / jnp.maximum(failure + repair, jnp.finfo(repair.dtype).tiny)
    return {"up": _link_coins(hyper, jnp.int32(-1)) < often}


def _markov(hyper: Hyper, memory: Memory, iteration: Int[Array, ""]) -> Now:
    """Links that are up fail with one probability, those that are down are repaired with another."""
    coins, up = _link_coins(hyper, iteration), memory["up"]
    stays = coins >= hyper.change.link_failure
    comes_back = coins < hyper.change.link_repair
    following = jnp.where(up, stays, comes_back)
    return Now(hyper.adjacency & up, _everybody(hyper), {"up": following})


def _periodic(hyper: Hyper, memory: Memory, iteration: Int[Array, ""]) -> Now:
    """Links take turns: in any `period` iterations, each link is up once."""
    up = iteration % hyper.change.period == hyper.change.turn
    return Now(hyper.adjacency & up, _everybody(hyper), memory)


def _mobility_begin(hyper: Hyper) -> Memory:
    places = hyper.change.places
    memory = {"places": places, "targets": _waypoints(hyper, jnp.int32(-1))}
    if hyper.neighbors is None:
        return memory
    lists, missed = near_lists(places, hyper.change.radius, hyper.neighbors.shape[1])
    return memory | {"lists": lists, "missed": missed}


def _mobility(hyper: Hyper, memory: Memory, iteration: Int[Array, ""]) -> Now:
    """Random waypoint: devices move to a random position, then to another; links are by distance."""
    places, targets = memory["places"], memory["targets"]
    way = targets - places
    distance = jnp.sqrt(jnp.sum(way**2, axis=1, keepdims=True))
    arrives = distance <= hyper.change.speed
    stride = jnp.where(arrives, way, way * (hyper.change.speed / jnp.maximum(distance, 1e-9)))
    following = {
        "places": places + stride,
        "targets": jnp.where(arrives, _waypoints(hyper, iteration), targets),
    }
    if hyper.neighbors is None:
        return Now(_near(places, hyper.change.radius), _everybody(hyper), following)
    devices, slots = hyper.neighbors.shape
    lists, missed = near_lists(places, hyper.change.radius, slots)
    links = lists < devices
    neighbors = jnp.where(links, lists, jnp.arange(devices, dtype=lists.dtype)[:, None])
    following |= {"lists": lists, "missed": memory["missed"] + missed}
    moved = Moved(neighbors, links & among(lists, memory["lists"]))
    return Now(links, _everybody(hyper), following, moved)


def _near(places: Float[Array, "device 2"], radius: Float[Array, ""]) -> Bool[Array, "device device"]:
    x, y = places[:, 0], places[:, 1]
    squared = (x[:, None] - x) ** 2 + (y[:, None] - y) ** 2
    return (squared <= radius**2) & ~jnp.eye(len(x), dtype=bool)


def _churn_begin(hyper: Hyper) -> Memory:
    return {"present": _everybody(hyper)}


def _churn(hyper: Hyper, memory: Memory, iteration: Int[Array, ""]) -> Now:
    """Devices leave and come back; a link is up if both ends are present."""
    present = memory["present"]
    devices = present.shape[0]
    coins = uniform(random_words(hyper.key, Stream.NETWORK, iteration, jnp.arange(devices)))
    stays, returns = coins >= hyper.change.leave, coins < hyper.change.come_back
    following = jnp.where(present, stays, returns)
    both = present[:, None] & behind_slots(present, hyper.neighbors)
    return Now(hyper.adjacency & both, present, {"present": following})


def _trace(hyper: Hyper, memory: Memory, iteration: Int[Array, ""]) -> Now:
    """The graphs of a file, each from its time until that of the next."""
    times, links = hyper.change.graphs
    newest = jnp.searchsorted(times, iteration, side="right") - 1
    return Now(links[newest], _everybody(hyper), memory)


DYNAMICS: dict[str, Dynamics] = {
    "static": Dynamics(_nothing, _static),
    "failures": Dynamics(_nothing, _failures),
    "markov": Dynamics(_markov_begin, _markov),
    "periodic": Dynamics(_nothing, _periodic),
    "mobility": Dynamics(_mobility_begin, _mobility),
    "churn": Dynamics(_churn_begin, _churn),
    "trace": Dynamics(_nothing, _trace),
}


class Change(NamedTuple):
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
    absent_train: Bool[Array, ""]
    graphs: tuple[Int[Array, "graph"], Bool[Array, "graph device slot"]]  # first iterations and links


def _link_coins(hyper: Hyper, iteration: Int[Array, ""]) -> Float[Array, "device slot"]:
    numbers = link_numbers(hyper.bandwidth.shape[0], hyper.neighbors)
    words = random_words(hyper.key, Stream.NETWORK, iteration, numbers.ravel())
    return uniform(words).reshape(numbers.shape)


def _waypoints(hyper: Hyper, iteration: Int[Array, ""]) -> Float[Array, "device 2"]:
    shape = hyper.change.places.shape
    positions = jnp.arange(shape[0] * 2)
    return uniform(random_words(hyper.key, Stream.NETWORK, iteration, positions)).reshape(shape)
