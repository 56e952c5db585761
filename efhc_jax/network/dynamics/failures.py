"""Independent failures: a link is up or down at random, in every iteration anew."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Array, Int

from efhc_jax.members import parameter
from efhc_jax.network.dynamics.base import (
    Dynamics,
    Memory,
    NetworkValues,
    Snapshot,
    link_coins,
    with_links,
)


@dataclass(frozen=True)
class Failures:
    """Parameters of the dynamics `failures`."""

    up_probability: float = parameter(0.8, "Probability that a link is up.", low=0, high=1)


def at(
    network: NetworkValues, parameters: Failures, memory: Memory, iteration: Int[Array, ""]
) -> tuple[Snapshot, Memory]:
    """Each link is up with one probability, independently of all others and of the past."""
    up = link_coins(network, iteration) < parameters.up_probability
    return with_links(network, network.adjacency & up), memory


DYNAMICS = Dynamics(at, parameters=Failures)
