"""Links that take turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from efhc_jax.members import parameter
from efhc_jax.network.dynamics.base import (
    Drawing,
    Drawn,
    Dynamics,
    Memory,
    NetworkValues,
    Snapshot,
    with_links,
)
from efhc_jax.network.slots import Network, exact_link_numbers, refitted
from efhc_jax.randomness.streams import Stream, host_stream


@dataclass(frozen=True)
class Periodic:
    """Parameters of the dynamics `periodic`."""

    period: int = parameter(5, "Number of iterations in which every link is up once.", low=1)


def draw(drawing: Drawing) -> Drawn:
    """The turns of all links, in random order."""
    links, devices = drawing.links, drawing.settings.devices
    order = host_stream(drawing.seed, Stream.NETWORK).permutation(len(links))
    turn_of_link = np.empty(len(links), np.int32)
    turn_of_link[order] = np.arange(len(links)) % drawing.parameters.period
    numbers = links[:, 0].astype(np.int64) * devices + links[:, 1]  # in increasing order
    slots = exact_link_numbers(drawing.network)
    place = np.minimum(np.searchsorted(numbers, slots), max(len(links) - 1, 0))
    turns = turn_of_link[place] if len(links) else np.zeros_like(slots, np.int32)
    return Drawn(jnp.asarray(turns))


def fit(turns: Sequence[Array], before: Sequence[Network], after: Sequence[Network]) -> list[Array]:
    """The turns in the slots of padded networks."""
    return [refitted(*one) for one in zip(turns, before, after, strict=True)]


def at(
    network: NetworkValues, parameters: Periodic, memory: Memory, iteration: Int[Array, ""]
) -> tuple[Snapshot, Memory]:
    """In any `period` iterations, each link is up once."""
    up = iteration % parameters.period == network.drawn
    return with_links(network, network.adjacency & up), memory


DYNAMICS = Dynamics(at, parameters=Periodic, draw=draw, fit=fit)
