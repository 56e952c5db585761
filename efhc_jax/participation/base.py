"""The type of all rules of participation: who takes part in an iteration.

A device that does not take part keeps its model from a gradient step, but sends and receives. A link
that does not take part is not used, but stays in the network: degrees and Event 1 do not depend on it.

Random numbers are hashes of the seed, the iteration and the device or link, so they are the same at both
ends of a link and independent of the rest of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, Key, UInt32

from efhc_jax.network.dynamics.base import Snapshot
from efhc_jax.network.geometry import Links
from efhc_jax.network.slots import Network, devices_of, link_numbers
from efhc_jax.randomness.draws import random_words, uniform
from efhc_jax.randomness.streams import Stream

Values = Any  # a tree of arrays


class Drawing(NamedTuple):
    """The settings and links that a rule can use on the host, once per run.

    Attributes:
        devices: m.
        iterations: number of iterations of the run.
        links: all links of the network before its dynamics (link, 2).
        network: the same links in slots.
        parameters: of the rule.
        rng: generator for what it draws.
    """

    devices: int
    iterations: int
    links: Links
    network: Network
    parameters: Any
    rng: np.random.Generator


class Participation(NamedTuple):
    """A rule for who takes part in an iteration.

    `devices` and `links` are traced into the compiled program. Both are functions from the values of
    `draw`, the parameters, the key of the run, k, and the network in iteration k. Either is None, or
    returns None, if all take part.

    Attributes:
        draw: function from a `Drawing` to what is drawn on the host, a tree of arrays, or None.
        devices: function to one boolean per device: whether it takes a gradient step.
        links: function to one boolean per slot of the network, the same at both ends of a link: whether
            the link can be used.
        parameters: frozen dataclass of its own parameters, or None.
        fit: function from the values that several runs have drawn, their networks, and the same networks
            padded to equal shapes, to values of equal shapes; None if all shapes are equal.
        closes_links: function from the parameters to whether any link may be left out; None if never.
        idle: function from the parameters to those that have no effect: a reason for each, by name.
    """

    draw: Callable[[Drawing], Values] | None = None
    devices: Callable[..., Bool[Array, "device"] | None] | None = None
    links: Callable[..., Bool[Array, "row slot"] | None] | None = None
    parameters: type | None = None
    fit: Callable[[Sequence[Any], Sequence[Network], Sequence[Network]], list[Any]] | None = None
    closes_links: Callable[[Any], bool] | None = None
    idle: Callable[[Any], dict[str, str]] | None = None


def devices_taking_part(
    participation: Participation,
    values: Values,
    parameters: Any,
    key: Key[Array, ""],
    iteration: Int[Array, ""],
    network: Snapshot,
) -> Bool[Array, "device"] | None:
    """The devices that take a gradient step in iteration k; None for all."""
    if participation.devices is None:
        return None
    return participation.devices(values, parameters, key, iteration, network)


def links_taking_part(
    participation: Participation,
    values: Values,
    parameters: Any,
    key: Key[Array, ""],
    iteration: Int[Array, ""],
    network: Snapshot,
) -> Bool[Array, "row slot"] | None:
    """The links that can be used in iteration k, in the slots of the network; None for all."""
    if participation.links is None:
        return None
    return participation.links(values, parameters, key, iteration, network)


def device_coins(
    key: Key[Array, ""], iteration: Int[Array, ""], network: Snapshot
) -> Float[Array, "device"]:
    """A random number for every device, uniform on [0, 1)."""
    return uniform(random_words(key, Stream.PARTICIPATION, iteration, device_positions(network)))


def link_coins(
    key: Key[Array, ""], iteration: Int[Array, ""], network: Snapshot
) -> Float[Array, "row slot"]:
    """A random number for every link, uniform on [0, 1), the same at both ends."""
    positions = link_positions(network)
    words = random_words(key, Stream.PARTICIPATION, iteration, positions.ravel())
    return uniform(words).reshape(positions.shape)


def device_positions(network: Snapshot) -> Integer[Array, "device"]:
    """The positions of the devices' random numbers: 0, 1, …, m − 1."""
    return jnp.arange(devices_of(Network(network.links, network.neighbors)))


def link_positions(network: Snapshot) -> UInt32[Array, "row slot"]:
    """The positions of the links' random numbers, after those of the devices."""
    devices = devices_of(Network(network.links, network.neighbors))
    return devices + link_numbers(devices, network.neighbors)
