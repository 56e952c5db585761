"""The k largest of many numbers, without sorting, for a k that is a value of the program.

A threshold is found from its highest bit to its lowest, by counting the entries that reach it: a radix
selection. A pass over the entries costs much less than a step of a sort, and there are as many passes
as an integer has bits, or fewer: the passes of a CPU decide one bit each and end when exactly k entries
reach the threshold; those of other platforms decide four at once with 15 counts in one kernel, because
launches are what they cost there.

A CPU counts in vector registers only if the sum is element by element, so its entries are folded into
32 parts that are added to each other first. XLA would make a sum along a row a tree of sums through
memory, which takes three to six times as long.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt

_FOLDS = 32  # parts of a row that a CPU adds to each other
_DIGIT = 4  # bits that a pass decides on other platforms
_TOLERANCE = 1 - 1e-6  # so that ratio·n rounded to 32 bits does not add an entry


def entries_kept(ratio: Float[Array, ""] | float, parameters: int) -> Int[Array, ""]:
    """Number of entries to keep: k = ⌈ratio·n⌉, at least 1."""
    k = jnp.ceil(ratio * (parameters * _TOLERANCE))
    return jnp.clip(k.astype(jnp.int32), 1, parameters)


def entries_kept_on_host(ratio: float, parameters: int) -> int:
    """The same from Python numbers."""
    return min(max(math.ceil(ratio * (parameters * _TOLERANCE)), 1), parameters)


def least_share_kept(ratio: float, parameters: int) -> float:
    """k/n."""
    return entries_kept_on_host(ratio, parameters) / parameters


def threshold_of_largest(
    patterns: UInt[Array, "row entries"], k: Int[Array, ""] | int
) -> UInt[Array, "row"]:
    """A threshold that the k largest entries of each row reach, those equal to the k-th, and no others.

    Example:
        >>> row = jnp.array([[5, 1, 5, 9]], jnp.uint32)
        >>> [(row >= threshold_of_largest(row, k)[:, None]).tolist()[0] for k in (1, 2)]
        [[False, False, False, True], [True, False, True, True]]
    """
    k = jnp.asarray(k, jnp.int32)
    return lax.platform_dependent(patterns, k, cpu=bit_by_bit, default=by_digits)


def count_reaching(
    patterns: UInt[Array, "row entries"], threshold: UInt[Array, "row"]
) -> Int[Array, "row"]:
    """Number of entries of each row that reach its threshold, which is above 0."""

    def on_cpu(patterns: Array, threshold: Array) -> Array:
        return _count(_folded(patterns), threshold)

    def at_once(patterns: Array, threshold: Array) -> Array:
        return jnp.sum(patterns >= threshold[:, None], axis=1, dtype=jnp.int32)

    return lax.platform_dependent(patterns, threshold, cpu=on_cpu, default=at_once)


class _Search(NamedTuple):
    bit: UInt[Array, ""]  # the next to decide
    threshold: UInt[Array, "row"]
    reaching: Int[Array, "row"]  # entries that reach it, at least k


def bit_by_bit(patterns: UInt[Array, "row entries"], k: Int[Array, ""]) -> UInt[Array, "row"]:
    """`threshold_of_largest` on a CPU."""
    rows, entries = patterns.shape
    folded = _folded(patterns)

    def unfinished(search: _Search) -> Bool[Array, ""]:
        return (search.bit > 0) & jnp.any(search.reaching != k)

    def decide(search: _Search) -> _Search:
        higher = search.threshold | search.bit
        reaching = _count(folded, higher)
        enough = reaching >= k
        return _Search(
            search.bit >> 1,
            jnp.where(enough, higher, search.threshold),
            jnp.where(enough, reaching, search.reaching),
        )

    nothing = jnp.zeros(rows, patterns.dtype)
    begin = _Search(_highest_bit(patterns), nothing, jnp.full(rows, entries, jnp.int32))
    return lax.while_loop(unfinished, decide, begin).threshold


def by_digits(patterns: UInt[Array, "row entries"], k: Int[Array, ""]) -> UInt[Array, "row"]:
    """`threshold_of_largest` on platforms that launch kernels."""
    threshold = jnp.zeros(patterns.shape[0], patterns.dtype)
    digits = np.arange(1, 2**_DIGIT, dtype=patterns.dtype)
    for position in reversed(range(0, _width(patterns), _DIGIT)):
        higher = threshold[:, None] | (digits << digits.dtype.type(position))
        reaching = jnp.sum(patterns[:, None] >= higher[..., None], axis=2, dtype=jnp.int32)
        digit = jnp.sum(reaching >= k, axis=1, dtype=patterns.dtype)
        threshold |= digit << digits.dtype.type(position)
    return threshold


def _folded(patterns: UInt[Array, "row entries"]) -> Int[Array, "row fold part"]:
    """The entries in parts, with zeros after the last."""
    rows, entries = patterns.shape
    padded = jnp.pad(patterns, ((0, 0), (0, -entries % _FOLDS)))
    return _signed(padded.reshape(rows, _FOLDS, -1))


def _count(folded: Int[Array, "row fold part"], threshold: UInt[Array, "row"]) -> Int[Array, "row"]:
    """Number of entries that reach a threshold above 0."""
    least = _signed(threshold)[:, None]
    reaching = sum((folded[:, fold] >= least).astype(jnp.int32) for fold in range(_FOLDS))
    return jnp.sum(jnp.asarray(reaching), axis=1, dtype=jnp.int32)


def _signed(patterns: UInt[Array, "*shape"]) -> Int[Array, "*shape"]:
    """The same order in integers with a sign, for which CPUs have comparisons of vectors."""
    kind = jnp.int64 if _width(patterns) == 64 else jnp.int32
    return lax.bitcast_convert_type(patterns ^ _highest_bit(patterns), kind)


def _highest_bit(patterns: UInt[Array, "*shape"]) -> UInt[Array, ""]:
    return jnp.asarray(np.array(1 << (_width(patterns) - 1), patterns.dtype))


def _width(patterns: UInt[Array, "*shape"]) -> int:
    """Bits of an entry."""
    return 8 * patterns.dtype.itemsize
