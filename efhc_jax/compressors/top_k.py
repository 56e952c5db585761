"""Top-k: the k entries with the largest absolute values, with their positions."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, UInt

from efhc_jax.compressors.base import Compressor
from efhc_jax.compressors.selection import (
    count_reaching,
    entries_kept,
    least_share_kept,
    threshold_of_largest,
)


def compress(
    vectors: Float[Array, "device *parameters"], settings: Any, words: object
) -> tuple[Float[Array, "device *parameters"], Float[Array, "device"]]:
    """Entries with at least the k-th largest absolute value, each in 32 + ⌈log₂ n⌉ bits; k = ⌈ratio·n⌉.

    Of entries that are equal to the k-th all are kept, so that nothing depends on their order. Zeros
    are never sent.

    Example:
        >>> from types import SimpleNamespace
        >>> x = jnp.array([[3.0, -1.0, 0.5, -4.0], [0.0, 0.0, 0.0, 7.0]])
        >>> sent, bits = compress(x, SimpleNamespace(ratio=0.5), None)
        >>> sent.tolist(), bits.tolist()
        ([[3.0, 0.0, 0.0, -4.0], [0.0, 0.0, 0.0, 7.0]], [68.0, 34.0])
    """
    devices, *shape = vectors.shape
    parameters = math.prod(shape)
    magnitudes = _magnitudes(vectors).reshape(devices, parameters)
    threshold = threshold_of_largest(magnitudes, entries_kept(settings.ratio, parameters))
    least = jnp.maximum(threshold, 1)  # the zeros are below
    kept = (magnitudes >= least[:, None]).reshape(vectors.shape)
    count = count_reaching(magnitudes, least).astype(vectors.dtype)
    return jnp.where(kept, vectors, 0), count * _bits_per_entry(parameters)


def numbers(parameters: int, settings: Any) -> float:
    """n(32 + ⌈log₂ n⌉) / 32, whatever k is: all entries may be equal."""
    return parameters * _bits_per_entry(parameters) / 32


def contraction(parameters: int, settings: Any) -> float:
    """ω = k/n."""
    return least_share_kept(settings.ratio, parameters)


def _bits_per_entry(parameters: int) -> int:
    """32 for the value and ⌈log₂ n⌉ for the position."""
    return 32 + (parameters - 1).bit_length()


def _magnitudes(vectors: Float[Array, "*shape"]) -> UInt[Array, "*shape"]:
    """The bits of |x| as integers, which are in the order of |x|; NaN is above all numbers."""
    word = jnp.uint64 if vectors.dtype.itemsize == 8 else jnp.uint32
    return lax.bitcast_convert_type(jnp.abs(vectors), word)


COMPRESSOR = Compressor(compress, numbers, ("ratio",), contraction)
