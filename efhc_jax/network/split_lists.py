"""Neighbour lists in rows of equal length, for graphs in which few devices have most links.

The first rows are one per device. The neighbours for which they have no room are in further rows, each
of which belongs to one device. A star of m devices then has little more than m rows, not m columns.

Sums over further rows are taken in steps: each adds up to eight rows of the same device, until there is
one sum per device. The order of addition is fixed by the graph and nothing is scattered, so results have
equal bits on every repetition, also on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Shaped

_TOGETHER = 8  # rows that are added in a step
_NOWHERE = np.iinfo(np.int32).max  # an index without a row, which stands for zero


class SplitLists(NamedTuple):
    """The devices in all slots, in rows, and how rows are added.

    Attributes:
        neighbors: the device in each slot; unused slots contain the device of the row.
        owners: the device of each further row.
        steps: for each step, and each sum that it gives, the rows or sums to add.
        sums: for each device, its sum after the last step.
    """

    neighbors: Int[Array, "row slot"]
    owners: Int[Array, "further"]
    steps: tuple[Int[Array, "_sum member"], ...]
    sums: Int[Array, "device"]

    @property
    def devices(self) -> int:
        """Number of devices, m."""
        return self.sums.shape[-1]


def further_rows(degrees: np.ndarray, slots: int) -> int:
    """Number of rows beyond one per device for these degrees."""
    return int((-(-np.maximum(degrees - slots, 0) // slots)).sum())


def split_lists(both: np.ndarray, devices: int, slots: int) -> SplitLists:
    """Lists of so many slots per row.

    Args:
        both: the links in both directions (link, 2).
        devices: m.
        slots: the length of a row.
    """
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    place = _place_in_group(both[:, 0])
    first, rest = place < slots, both[place >= slots]
    neighbors = np.repeat(np.arange(devices, dtype=np.int32)[:, None], slots, axis=1)
    neighbors[both[first, 0], place[first]] = both[first, 1]
    owners, members = _grouped(rest[:, 0], slots)
    if not len(owners):  # arrays without rows cannot be read; this one has no links
        owners, members = np.zeros(1, int), np.full((1, slots), _NOWHERE, np.int32)
    senders = np.append(rest[:, 1], 0)[np.minimum(members, len(rest))]
    further = np.where(members == _NOWHERE, owners[:, None], senders)
    steps: list[Array] = []
    ids = owners
    while not steps or len(np.unique(ids)) < len(ids):
        ids, step = _grouped(ids, _TOGETHER)
        steps.append(jnp.asarray(step))
    sums = np.full(devices, _NOWHERE, np.int32)
    sums[ids] = np.arange(len(ids))
    rows = np.concatenate([neighbors, further.astype(np.int32)])
    return SplitLists(jnp.asarray(rows), jnp.asarray(owners, jnp.int32), tuple(steps), jnp.asarray(sums))


def padded(lists: list[SplitLists]) -> list[SplitLists]:
    """Lists with rows of the same length, all with as many rows and steps."""
    steps = max(len(each.steps) for each in lists)
    further = max(len(each.owners) for each in lists)
    sums = [max(_sums_in(each, step) for each in lists) for step in range(steps)]
    return [_padded(each, further, sums) for each in lists]


def _padded(lists: SplitLists, further: int, sums: list[int]) -> SplitLists:
    more = further - len(lists.owners)
    steps = [
        jnp.pad(
            _step(lists, step), ((0, count - _sums_in(lists, step)), (0, 0)), constant_values=_NOWHERE
        )
        for step, count in enumerate(sums)
    ]
    return lists._replace(
        neighbors=jnp.pad(lists.neighbors, ((0, more), (0, 0))),  # rows of device 0, without a link
        owners=jnp.pad(lists.owners, (0, more)),
        steps=tuple(steps),
    )


def _step(lists: SplitLists, number: int) -> Int[Array, "_sum member"]:
    """A step; after the last one, sums stay as they are."""
    if number < len(lists.steps):
        return lists.steps[number]
    count = _sums_in(lists, number)
    same = np.full((count, _TOGETHER), _NOWHERE, np.int32)
    same[:, 0] = np.arange(count)
    return jnp.asarray(same)


def _sums_in(lists: SplitLists, step: int) -> int:
    return len(lists.steps[min(step, len(lists.steps) - 1)])


def sum_of_rows(values: Shaped[Array, "row"], lists: SplitLists) -> Shaped[Array, "device"]:
    """The sum of the values of all rows of each device."""
    further = values[lists.devices :]
    for step in lists.steps:
        further = taken(further, step).sum(1)
    return values[: lists.devices] + taken(further, lists.sums)


def sums_of_further(
    values: Shaped[Array, "further *parameters"], lists: SplitLists
) -> Shaped[Array, "_sum *parameters"]:
    """The sums of the further rows, one per device that has any, to be taken by `sums`.

    Each step is a loop, so that compilers neither gather all rows into one array nor compute them again
    where they are used.
    """
    for step in lists.steps:
        start = jnp.zeros((len(step), *values.shape[1:]), values.dtype)
        values = jax.lax.fori_loop(0, _TOGETHER, _adding(values, step), start)
    return values


def _adding(values: Array, step: Array) -> Callable[[Array, Array], Array]:
    def add(member: Array, total: Array) -> Array:
        return total + taken(values, step[:, member])

    return add


def taken(values: Shaped[Array, "_row ..."], index: Int[Array, "..."]) -> Shaped[Array, "..."]:
    """The values at an index, or zero where it is none."""
    return values.at[index].get(mode="fill", fill_value=0)


def _grouped(ids: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Consecutive equal ids in groups of at most this width: their ids, and the places of members."""
    place = _place_in_group(ids)
    head = place % width == 0
    members = np.full((int(head.sum()), width), _NOWHERE, np.int32)
    members[np.cumsum(head) - 1, place % width] = np.arange(len(ids))
    return ids[head], members


def _place_in_group(ids: np.ndarray) -> np.ndarray:
    """The place of each entry among the equal ones before it; equal ones are consecutive."""
    number = np.arange(len(ids))
    begins = np.append(True, ids[1:] != ids[:-1])[: len(ids)]
    return number - np.maximum.accumulate(np.where(begins, number, 0))
