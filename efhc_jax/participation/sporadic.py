"""Sporadic participation: devices compute, and links work, with probabilities of their own.

This is DSpodFL (arXiv 2402.03448): device i takes a gradient step with probability d_i, and the link
between i and j can be used with probability b_ij.

The probabilities are hashes as well: each device and each link picks one of many equally likely values,
the quantiles of a distribution. They need no memory per link, and a link has the same probability
wherever it is stored, in whatever graph and for however many iterations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, Key

from efhc_jax.errors import ExperimentError
from efhc_jax.members import parameter, shown
from efhc_jax.network.dynamics.base import Snapshot
from efhc_jax.participation.base import (
    Drawing,
    Participation,
    device_coins,
    device_positions,
    link_coins,
    link_positions,
)
from efhc_jax.participation.distributions import check_distribution, quantiles
from efhc_jax.randomness.draws import random_words, stream_key
from efhc_jax.randomness.streams import Stream

_CHOICES = 4096  # probabilities to choose from, which divide the number of random words
_CERTAIN = 2**24  # probabilities are multiples of 2^-24, as random numbers are
_STEPS = ("random", "regular")


@dataclass(frozen=True)
class Sporadic:
    """Parameters of the participation `sporadic`."""

    gradients: str = parameter(
        "beta", "Distribution of the probabilities of a gradient step: one, beta, normal or two."
    )
    gradients_a: float = parameter(
        0.5, "Its first parameter: of beta, the mean of normal, or one of two values.", low=0
    )
    gradients_b: float = parameter(
        0.5, "Its second: of beta, the standard deviation of normal, or the other value.", low=0
    )
    links: str = parameter(
        "beta", "Distribution of the probabilities of a link: one, beta, normal or two."
    )
    links_a: float = parameter(0.5, "Its first parameter.", low=0)
    links_b: float = parameter(0.5, "Its second parameter.", low=0)
    steps: str = parameter(
        "random", "Gradient steps at random, or regular: each device at its own speed."
    )
    redrawn: int = parameter(
        0, "Number of iterations after which probabilities are drawn anew; 0 for never.", low=0
    )

    def __post_init__(self) -> None:
        for name in ("gradients", "links"):
            a, b = getattr(self, f"{name}_a"), getattr(self, f"{name}_b")
            check_distribution(f"participation.{name}", getattr(self, name), a, b)
        if self.steps not in _STEPS:
            raise ExperimentError(
                f"participation.steps={shown(self.steps)}: give one of {', '.join(_STEPS)}"
            )


class Choices(NamedTuple):
    """Probabilities to choose from, all equally likely; None where all are 1."""

    gradients: Float[Array, "choice"] | None
    links: Float[Array, "choice"] | None


def draw(drawing: Drawing) -> Choices:
    """The quantiles of both distributions."""
    own = drawing.parameters
    return Choices(
        _choices(own.gradients, own.gradients_a, own.gradients_b),
        _choices(own.links, own.links_a, own.links_b),
    )


def _choices(name: str, a: float, b: float) -> Float[Array, "choice"] | None:
    """The quantiles of a distribution, rounded up to what a random number can be compared with."""
    if name == "one":
        return None
    levels = (np.arange(_CHOICES) + 0.5) / _CHOICES
    rounded = np.ceil(quantiles(name, a, b, levels) * _CERTAIN) / _CERTAIN
    return jnp.asarray(rounded, jnp.result_type(float))


def gradient_probabilities(
    values: Choices,
    parameters: Sporadic,
    key: Key[Array, ""],
    iteration: Int[Array, ""],
    network: Snapshot,
) -> Float[Array, "device"] | None:
    """d_i in iteration k; None if all are 1."""
    if values.gradients is None:
        return None
    return _chosen(values.gradients, parameters, key, iteration, device_positions(network))


def link_probabilities(
    values: Choices,
    parameters: Sporadic,
    key: Key[Array, ""],
    iteration: Int[Array, ""],
    network: Snapshot,
) -> Float[Array, "row slot"] | None:
    """b_ij in iteration k, of the link of every slot; None if all are 1."""
    if values.links is None:
        return None
    positions = link_positions(network)
    found = _chosen(values.links, parameters, key, iteration, positions.ravel())
    return found.reshape(positions.shape)


def _chosen(
    choices: Float[Array, "choice"],
    parameters: Sporadic,
    key: Key[Array, ""],
    iteration: Int[Array, ""],
    positions: Integer[Array, "count"],
) -> Float[Array, "count"]:
    """The probability at each position, drawn anew after every `redrawn` iterations."""
    period = jnp.where(parameters.redrawn > 0, iteration // jnp.maximum(parameters.redrawn, 1), 0)
    own = stream_key(key, Stream.PARTICIPATION)  # of which the coins are another stream
    words = random_words(own, Stream.PARTICIPATION, period, positions)
    return choices[(words % _CHOICES).astype(jnp.int32)]


def devices(
    values: Choices,
    parameters: Sporadic,
    key: Key[Array, ""],
    iteration: Int[Array, ""],
    network: Snapshot,
) -> Bool[Array, "device"] | None:
    """Devices that take a gradient step: at random with probability d_i, or regularly."""
    probability = gradient_probabilities(values, parameters, key, iteration, network)
    if probability is None:
        return None
    if parameters.steps == "regular":
        return has_turn(probability, iteration)
    return device_coins(key, iteration, network) < probability


def has_turn(share: Float[Array, "device"], iteration: Int[Array, ""]) -> Bool[Array, "device"]:
    """Whether ⌊(k + 1)·d_i⌋ > ⌊k·d_i⌋: after K iterations, a device has had ⌊K·d_i⌋ turns.

    It is computed in units of 2^-24 by whole numbers, which is exact for all k: what overflows is a
    multiple of 1.
    """
    each = (share * _CERTAIN).astype(jnp.uint32)
    rest = iteration.astype(jnp.uint32) * each % _CERTAIN
    return rest + each >= _CERTAIN


def links(
    values: Choices,
    parameters: Sporadic,
    key: Key[Array, ""],
    iteration: Int[Array, ""],
    network: Snapshot,
) -> Bool[Array, "row slot"] | None:
    """Links that can be used: at random, with probability b_ij."""
    probability = link_probabilities(values, parameters, key, iteration, network)
    return None if probability is None else link_coins(key, iteration, network) < probability


def closes_links(parameters: Sporadic) -> bool:
    """Whether links have probabilities below 1."""
    return parameters.links != "one"


def idle(parameters: Sporadic) -> dict[str, str]:
    """The parameters of probabilities that are always 1."""
    found: dict[str, str] = {}
    for name in ("gradients", "links"):
        if getattr(parameters, name) == "one":
            why = f"has no effect with participation.{name}='one'; give another, or leave it out"
            found |= dict.fromkeys((f"{name}_a", f"{name}_b"), why)
    if parameters.gradients == "one":
        found["steps"] = "has no effect with participation.gradients='one'; leave it out"
    if parameters.gradients == parameters.links == "one":
        found["redrawn"] = "has no effect where all probabilities are 1; leave it out"
    return found


PARTICIPATION = Participation(draw, devices, links, Sporadic, closes_links=closes_links, idle=idle)
