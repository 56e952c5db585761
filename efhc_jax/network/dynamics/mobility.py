"""Devices that move: random waypoint in the unit square, with links by distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from efhc_jax.members import parameter
from efhc_jax.network.dynamics.base import (
    Drawing,
    Drawn,
    Dynamics,
    NetworkValues,
    Snapshot,
    everybody,
    with_links,
)
from efhc_jax.network.geometry import connected_places, within
from efhc_jax.network.proximity import among, near_lists, neighbor_capacity
from efhc_jax.network.topologies import NetworkSettings
from efhc_jax.randomness.draws import random_words, uniform
from efhc_jax.randomness.streams import Stream, host_stream


@dataclass(frozen=True)
class Mobility:
    """Parameters of the dynamics `mobility`."""

    speed: float = parameter(0.01, "Distance that a device moves per iteration.", low=0, high=1.5)


class Square(NamedTuple):
    """Where the devices begin, and how far a link reaches."""

    places: Float[Array, "device 2"]
    radius: Float[Array, ""]


class Journey(NamedTuple):
    """Where the devices are, and where they go."""

    places: Float[Array, "device 2"]
    targets: Float[Array, "device 2"]
    lists: Int[Array, "device slot"] | None = None  # neighbours of the last iteration, if in lists
    missed: Int[Array, ""] | None = None  # neighbours so far for which a list had no room


def draw(drawing: Drawing) -> Drawn:
    """The positions of the geometric graph."""
    real = jnp.result_type(float)
    settings, rng = drawing.settings, host_stream(drawing.seed, Stream.GRAPH)
    places = connected_places(settings.devices, settings.placement, rng)
    radius = jnp.asarray(settings.connectivity, real)
    return Drawn(Square(jnp.asarray(places, real), radius))


def room(settings: NetworkSettings) -> int:
    """The largest number of neighbours that moving devices are likely to have."""
    return neighbor_capacity(settings.devices, settings.connectivity)


def init(network: NetworkValues, parameters: Mobility) -> Journey:
    """All devices at their first positions, on their way."""
    square = network.drawn
    journey = Journey(square.places, _waypoints(network, jnp.int32(-1)))
    if network.neighbors is None:
        return journey
    lists, missed = near_lists(square.places, square.radius, network.adjacency.shape[1])
    return journey._replace(lists=lists, missed=missed)


def at(
    network: NetworkValues, parameters: Mobility, journey: Journey, iteration: Int[Array, ""]
) -> tuple[Snapshot, Journey]:
    """Devices move to a random position, then to another."""
    places, targets, radius = journey.places, journey.targets, network.drawn.radius
    way = targets - places
    distance = jnp.sqrt(jnp.sum(way**2, axis=1, keepdims=True))
    arrives = distance <= parameters.speed
    stride = jnp.where(arrives, way, way * (parameters.speed / jnp.maximum(distance, 1e-9)))
    following = Journey(places + stride, jnp.where(arrives, _waypoints(network, iteration), targets))
    if network.neighbors is None or journey.lists is None or journey.missed is None:
        return with_links(network, within(places, radius)), following
    devices, slots = network.adjacency.shape
    lists, missed = near_lists(places, radius, slots)
    links = lists < devices
    neighbors = jnp.where(links, lists, jnp.arange(devices, dtype=lists.dtype)[:, None])
    following = following._replace(lists=lists, missed=missed + journey.missed)
    previous = links & among(lists, journey.lists)
    return Snapshot(links, neighbors, everybody(network), previous), following


def problem(journey: Journey) -> str:
    """Whether a device had more neighbours than its list has room for."""
    if journey.missed is None or journey.lists is None or not journey.missed.any():
        return ""
    return (
        f"a device has more than the {journey.lists.shape[-1]} neighbours that there is room for, "
        "which is very unlikely; try another seed"
    )


def _waypoints(network: NetworkValues, iteration: Int[Array, ""]) -> Float[Array, "device 2"]:
    shape = network.drawn.places.shape
    positions = jnp.arange(shape[0] * 2)
    return uniform(random_words(network.key, Stream.NETWORK, iteration, positions)).reshape(shape)


DYNAMICS = Dynamics(
    at, init, parameters=Mobility, draw=draw, room=room, graphs=("geometric",), problem=problem
)
