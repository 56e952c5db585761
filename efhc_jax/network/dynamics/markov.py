"""Links that fail and are repaired: a Markov chain of two states per link."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from efhc_jax.members import parameter
from efhc_jax.network.dynamics.base import Dynamics, NetworkValues, Snapshot, link_coins, with_links

Up = Bool[Array, "row slot"]


@dataclass(frozen=True)
class Markov:
    """Parameters of the dynamics `markov`."""

    failure: float = parameter(0.05, "Probability per iteration that a link fails.", low=0, high=1)
    repair: float = parameter(
        0.2, "Probability per iteration that a failed link is repaired.", low=0, high=1
    )


def init(network: NetworkValues, parameters: Markov) -> Up:
    """Links start in the stationary distribution: up with probability repair / (repair + failure)."""
    coins = link_coins(network, jnp.int32(-1))
    total = jnp.maximum(parameters.failure + parameters.repair, jnp.finfo(coins.dtype).tiny)
    return coins < parameters.repair / total


def at(
    network: NetworkValues, parameters: Markov, up: Up, iteration: Int[Array, ""]
) -> tuple[Snapshot, Up]:
    """Links that are up fail with one probability, those that are down are repaired with another."""
    coins = link_coins(network, iteration)
    following = jnp.where(up, coins >= parameters.failure, coins < parameters.repair)
    return with_links(network, network.adjacency & up), following


DYNAMICS = Dynamics(at, init, parameters=Markov)
