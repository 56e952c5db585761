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


class _Search(NamedTuple):
    bit: UInt[Array, ""]  # the next to decide
    threshold: UInt[Array, "row"]
    reaching: Int[Array, "row"]  # entries that reach it, at least k


def bit_by_bit(patterns: UInt[Array, "row entries"], k: Int[Array, ""]) -> UInt[Array, "row"]:
    """`threshold_of_largest` on a CPU."""
    rows, entries = patterns.shape
    folded = jnp.pad(patterns, ((0, 0), (0, -entries % _FOLDS))).reshape(rows, _FOLDS, -1)

    def unfinished(search: _Search) -> Bool[Array, ""]:
        return (search.bit > 0) & jnp.any(search.reaching != k)

    def decide(search: _Search) -> _Search:
        higher = search.threshold | search.bit
        parts = (folded[:, part] >= higher[:, None] for part in range(_FOLDS))
        reaching = jnp.sum(sum(part.astype(jnp.int32) for part in parts), axis=1, dtype=jnp.int32)
        enough = reaching >= k
        return _Search(
            search.bit >> 1,
            jnp.where(enough, higher, search.threshold),
            jnp.where(enough, reaching, search.reaching),
        )

    first = jnp.asarray(np.array(1 << (_width(patterns) - 1), patterns.dtype))
    nothing = jnp.zeros(rows, patterns.dtype)
    begin = _Search(first, nothing, jnp.full(rows, entries, jnp.int32))
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


def _width(patterns: UInt[Array, "row entries"]) -> int:
    """Bits of an entry."""
    return 8 * patterns.dtype.itemsize
