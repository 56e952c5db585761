"""Random-k: the same k random entries of all devices, without their positions."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from efhc_jax.compressors.base import Compressor, Words
from efhc_jax.compressors.selection import (
    entries_kept,
    entries_kept_on_host,
    least_share_kept,
    threshold_of_largest,
)

_TIES = 16  # entries above k, of which one is already less likely than n in 2^32


def compress(
    vectors: Float[Array, "device *parameters"], settings: Any, words: Words
) -> tuple[Float[Array, "device *parameters"], Float[Array, "device"]]:
    """The entries with the k smallest of n random words, unscaled, in 32 bits each; k = ⌈ratio·n⌉.

    The positions follow from a seed that all devices have, so they are not sent. Of entries whose words
    are equal to the k-th all are kept. NaN remains wherever it is.
    """
    devices, *shape = vectors.shape
    parameters = math.prod(shape)
    drawn = ~words(jnp.arange(parameters))
    threshold = threshold_of_largest(drawn[None], entries_kept(settings.ratio, parameters))
    kept = drawn >= threshold
    bits = 32 * jnp.sum(kept, dtype=jnp.int32).astype(vectors.dtype)
    sent = jnp.where(kept.reshape(shape) | jnp.isnan(vectors), vectors, 0)
    return sent, jnp.broadcast_to(bits, devices)


def numbers(parameters: int, settings: Any) -> float:
    """k, and more than there will ever be of equal words."""
    return float(min(parameters, entries_kept_on_host(settings.ratio, parameters) + _TIES))


def contraction(parameters: int, settings: Any) -> float:
    """ω = k/n: each entry is kept with this probability."""
    return least_share_kept(settings.ratio, parameters)


COMPRESSOR = Compressor(compress, numbers, ("ratio",), contraction)
