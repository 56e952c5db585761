"""Devices that leave the network and come back."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from efhc_jax.members import parameter
from efhc_jax.network.dynamics.base import (
    Dynamics,
    NetworkValues,
    Snapshot,
    everybody,
    links_among,
)
from efhc_jax.randomness.draws import random_words, uniform
from efhc_jax.randomness.streams import Stream

Present = Bool[Array, "device"]


@dataclass(frozen=True)
class Churn:
    """Parameters of the dynamics `churn`."""

    leave_probability: float = parameter(
        0.01, "Probability per iteration that a device leaves.", low=0, high=1
    )
    return_probability: float = parameter(
        0.05, "Probability per iteration that an absent device comes back.", low=0, high=1
    )
    train_while_absent: bool = parameter(False, "Whether absent devices continue to train.")


def init(network: NetworkValues, parameters: Churn) -> Present:
    """All devices are present."""
    return everybody(network)


def at(
    network: NetworkValues, parameters: Churn, present: Present, iteration: Int[Array, ""]
) -> tuple[Snapshot, Present]:
    """A link is up if both ends are present."""
    coins = uniform(random_words(network.key, Stream.NETWORK, iteration, jnp.arange(network.devices)))
    stays, returns = coins >= parameters.leave_probability, coins < parameters.return_probability
    training = present | parameters.train_while_absent
    following = jnp.where(present, stays, returns)
    return Snapshot(links_among(network, present), network.neighbors, training), following


DYNAMICS = Dynamics(at, init, parameters=Churn)
