"""Neighbour search for many devices, without comparing all pairs.

The unit square is divided into cells slightly wider than the radius, numbered row by row, and the
devices are sorted by the number of their cell. The neighbours of a device are then in three ranges of
that order: three cells in its own row of cells, and three each in the rows below and above.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

_WIDER = 1.001  # width of a cell over the radius; rounding then never puts a neighbour two cells away
_DENSEST = 2.25  # density of random-waypoint devices in the middle, over the mean density
_NEVER = 1e-15  # probability of more neighbours than there is room for


def neighbor_capacity(devices: int, radius: float) -> int:
    """The number of neighbours, and of devices in a range of cells, to allocate room for.

    Positions are assumed independent, and as dense everywhere as in the middle of the square.
    """
    from scipy.stats import binom

    cell = 1 / max(1, math.floor(1 / (_WIDER * radius)))
    area = max(math.pi * radius**2, 3 * cell**2)
    return int(binom.isf(_NEVER, devices, min(1.0, _DENSEST * area)))


def near_lists(
    places: Float[Array, "device 2"], radius: Float[Array, ""], slots: int
) -> tuple[Int[Array, "device slot"], Int[Array, ""]]:
    """The devices within the radius of each device, and the number of those without room.

    Returns:
        Device indices in increasing order, padded with the number of devices; and how many devices
        were left out because a range or a list was too short.
    """
    devices = len(places)
    first, end, order = _stretches(places, radius)
    position = first[:, :, None] + jnp.arange(slots, dtype=jnp.int32)
    other = order[jnp.minimum(position, devices - 1)]
    x, y = places[:, 0], places[:, 1]
    squared = (x[:, None, None] - x[other]) ** 2 + (y[:, None, None] - y[other]) ** 2
    oneself = jnp.arange(devices, dtype=jnp.int32)[:, None, None]
    near = (position < end[:, :, None]) & (squared <= radius**2) & (other != oneself)
    candidates = jnp.where(near, other, devices).reshape(devices, -1)
    overlooked = jnp.maximum(end - first - slots, 0).sum()
    left_out = jnp.maximum(near.sum((1, 2)) - slots, 0).sum()
    return jnp.sort(candidates, axis=1)[:, :slots], (overlooked + left_out).astype(jnp.int32)


def among(
    lists: Int[Array, "device slot"], others: Int[Array, "device slot"]
) -> Bool[Array, "device slot"]:
    """Whether each entry of a device's list is also in its other list; both in increasing order."""

    def one(row: Int[Array, "slot"], other: Int[Array, "slot"]) -> Bool[Array, "slot"]:
        place = jnp.searchsorted(other, row)
        return other[jnp.minimum(place, len(other) - 1)] == row

    return jax.vmap(one)(lists, others)


def _stretches(
    places: Float[Array, "device 2"], radius: Float[Array, ""]
) -> tuple[Int[Array, "device 3"], Int[Array, "device 3"], Int[Array, "device"]]:
    """The ranges of the sorted order that each device must search, and that order."""
    cells = jnp.maximum(jnp.floor(1 / (_WIDER * radius)), 1).astype(jnp.int32)  # along each side
    column, row = jnp.clip((places * cells).astype(jnp.int32), 0, cells - 1).T
    number = row * cells + column
    order = jnp.argsort(number).astype(jnp.int32)
    in_order = number[order]
    rows = row[:, None] + jnp.array([-1, 0, 1], jnp.int32)
    left, right = jnp.maximum(column - 1, 0)[:, None], jnp.minimum(column + 1, cells - 1)[:, None]
    first = jnp.searchsorted(in_order, rows * cells + left, side="left").astype(jnp.int32)
    end = jnp.searchsorted(in_order, rows * cells + right, side="right").astype(jnp.int32)
    inside = (rows >= 0) & (rows < cells)
    return first, jnp.where(inside, end, first), order
