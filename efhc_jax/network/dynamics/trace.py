"""Graphs over time, from a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from efhc_jax.network.dynamics.base import (
    Drawing,
    Drawn,
    Dynamics,
    Memory,
    NetworkValues,
    Snapshot,
    with_links,
)
from efhc_jax.network.geometry import Links
from efhc_jax.network.graph_files import GraphsOverTime, read_graphs
from efhc_jax.network.slots import Network, in_slots, refitted
from efhc_jax.network.topologies import NetworkSettings

_NEVER = np.iinfo(np.int32).max


class Graphs(NamedTuple):
    """The graphs of a file, each from its time until that of the next."""

    times: Int[Array, "graph"]
    links: Bool[Array, "graph row slot"]


def links(settings: NetworkSettings) -> Links:
    """All links that are ever up."""
    return _read(settings).all_links()


def draw(drawing: Drawing) -> Drawn:
    """The graphs, in the slots of the run; it begins with the first."""
    over_time = _read(drawing.settings)
    slots = np.stack([in_slots(graph, drawing.network) for graph in over_time.links])
    return Drawn(Graphs(jnp.asarray(over_time.times.astype(np.int32)), jnp.asarray(slots)), slots[0])


def fit(drawn: Sequence[Graphs], before: Sequence[Network], after: Sequence[Network]) -> list[Graphs]:
    """The graphs in the slots of padded networks, with others that are never reached."""
    count = max(len(graphs.times) for graphs in drawn)
    return [_fitted(*one, count) for one in zip(drawn, before, after, strict=True)]


def _fitted(graphs: Graphs, before: Network, after: Network, count: int) -> Graphs:
    more = count - len(graphs.times)
    times = jnp.pad(graphs.times, (0, more), constant_values=_NEVER)
    slots = refitted(graphs.links, before, after)
    return Graphs(times, jnp.pad(slots, ((0, more), (0, 0), (0, 0))))


def _read(settings: NetworkSettings) -> GraphsOverTime:
    return read_graphs(settings.graph_file, settings.devices, settings.iterations)


def at(
    network: NetworkValues, parameters: None, memory: Memory, iteration: Int[Array, ""]
) -> tuple[Snapshot, Memory]:
    """The newest graph."""
    times, slots = network.drawn
    newest = jnp.searchsorted(times, iteration, side="right") - 1
    return with_links(network, slots[newest]), memory


DYNAMICS = Dynamics(at, draw=draw, fit=fit, links=links)
