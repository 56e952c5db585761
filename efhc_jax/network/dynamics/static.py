"""A network that never changes."""

from __future__ import annotations

from jaxtyping import Array, Int

from efhc_jax.network.dynamics.base import Dynamics, Memory, NetworkValues, Snapshot, with_links


def at(
    network: NetworkValues, parameters: None, memory: Memory, iteration: Int[Array, ""]
) -> tuple[Snapshot, Memory]:
    """The graph, unchanged."""
    return with_links(network, network.adjacency)._replace(previous=network.adjacency), memory


DYNAMICS = Dynamics(at, fixed=True)
