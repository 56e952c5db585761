"""Recorded values, stored together: all that is small in one vector per iteration.

Each array that a loop stores is a kernel on a GPU, however small it is.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

_SMALL = 64  # entries of an array that is packed


class Entry(NamedTuple):
    """Name, shape and type of a packed array."""

    name: str
    shape: tuple[int, ...]
    dtype: jnp.dtype

    @property
    def bits(self) -> int:
        """Of the words that hold it, a word per number; flags take 32."""
        return 32 if self.dtype == bool else 8 * self.dtype.itemsize

    @property
    def is_small(self) -> bool:
        """Whether it is packed."""
        return self.bits in _WORDS and math.prod(self.shape) <= _SMALL


_WORDS = {32: jnp.uint32, 64: jnp.uint64}


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=("words", "others"), meta_fields=("entries",)
)
@dataclass(frozen=True)
class Packed:
    """Recorded values of an iteration, or of several along leading axes.

    Attributes:
        words: the bits of all small arrays along the last axis, for each size of a word.
        others: larger arrays.
        entries: the small arrays in order.
    """

    words: dict[int, Array]
    others: dict[str, Array]
    entries: tuple[Entry, ...]


def pack(values: dict[str, Array]) -> Packed:
    """The values of an iteration, packed."""
    every = (Entry(name, value.shape, value.dtype) for name, value in values.items())
    entries = tuple(entry for entry in every if entry.is_small)
    words: dict[int, list[Array]] = {}
    for entry in entries:
        words.setdefault(entry.bits, []).append(_as_words(values[entry.name], entry).ravel())
    small = {entry.name for entry in entries}
    others = {name: value for name, value in values.items() if name not in small}
    return Packed({bits: jnp.concatenate(each) for bits, each in words.items()}, others, entries)


def unpack(packed: Packed) -> dict[str, Array]:
    """The values by name, with the leading axes of the packed ones."""
    found, first = dict(packed.others), dict.fromkeys(packed.words, 0)
    for entry in packed.entries:
        count, begin = math.prod(entry.shape), first[entry.bits]
        words = packed.words[entry.bits]
        some = words[..., begin : begin + count].reshape(*words.shape[:-1], *entry.shape)
        found[entry.name] = _from_words(some, entry)
        first[entry.bits] += count
    return found


def _as_words(value: Array, entry: Entry) -> Array:
    word = _WORDS[entry.bits]
    return value.astype(word) if entry.dtype == bool else jax.lax.bitcast_convert_type(value, word)


def _from_words(words: Array, entry: Entry) -> Array:
    if entry.dtype == bool:
        return words.astype(bool)
    return jax.lax.bitcast_convert_type(words, entry.dtype)
