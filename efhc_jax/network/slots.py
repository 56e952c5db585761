"""Storage of a network: a matrix of links for few devices, neighbour lists for many.

In all kinds, links are an array with a column, a *slot*, per device that a device may be linked to. In
the matrix, slot j of every device is device j. In lists, slot s of device i is `neighbors[i, s]`; unused
slots contain the device itself and are never up. Where few devices have most links, lists are split into
rows of equal length, of which a device has one or several (`split_lists.py`).

`neighbors` tells them apart: None, an array, or `SplitLists`. Only the functions of this module, and
mixing, look into it; computations on links are otherwise the same for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Shaped, UInt32

from efhc_jax.network.split_lists import SplitLists, further_rows, padded, split_lists, sum_of_rows

_MATRIX_UP_TO = 64  # devices
_FEW, _FEW_TOGETHER = 16, 2  # up to 16 slots, the length of a list is a multiple of 2
_SLOTS_TOGETHER = 8  # above, of 8
_SPLIT_SLOTS = (8, 16, 32, 64, 128)  # lengths of rows to choose from

Neighbors = Int[Array, "device slot"] | SplitLists | None


class Network(NamedTuple):
    """The links of one network, in slots."""

    links: Bool[Array, "row slot"]
    neighbors: Neighbors = None  # None for the matrix


class Storage(NamedTuple):
    """The size of a network's arrays."""

    rows: int  # more than devices in split lists
    slots: int  # of each row
    is_matrix: bool = False


def make_network(links: np.ndarray, devices: int, room: int = 0) -> Network:
    """A network from its links (link, 2), in the storage that is cheapest.

    If the neighbours of a device can change, `room` is the largest number that it can have.
    """
    degrees = np.bincount(links.ravel(), minlength=devices)
    rows, slots, is_matrix = stored(degrees, room)
    if is_matrix:
        return Network(jnp.asarray(to_matrix(links, devices)))
    lists = split_lists(np.concatenate([links, links[:, ::-1]]), devices, slots)
    whole = rows == devices
    return _without_missing_links(lists.neighbors[:devices] if whole else lists)


def stored(degrees: np.ndarray, room: int = 0) -> Storage:
    """The storage of a network with these degrees, of which none becomes larger than `room`.

    Example:
        >>> stored(np.full(1000, 20)), stored(np.full(1000, 999))
        (Storage(rows=1000, slots=24, is_matrix=False), Storage(rows=1000, slots=1000, is_matrix=True))
        >>> star = np.append(999, np.ones(999, int))
        >>> stored(star)
        Storage(rows=1124, slots=8, is_matrix=False)
    """
    devices = len(degrees)
    lists = Storage(devices, _rounded_up(max(room, int(degrees.max(initial=0)))))
    if devices <= _MATRIX_UP_TO:
        return Storage(devices, devices, True)
    if not room:
        split = min(
            (Storage(devices + further_rows(degrees, slots), slots) for slots in _SPLIT_SLOTS), key=_size
        )
        if 2 * _size(split) <= _size(lists):
            return split
    return Storage(devices, devices, True) if 4 * lists.slots > devices else lists


def _size(storage: Storage) -> int:
    return storage.rows * storage.slots


def _without_missing_links(neighbors: Neighbors) -> Network:
    """The network in which all links of these lists are up."""
    behind, own = _ends(neighbors)
    return Network(jnp.asarray(behind != own), neighbors)


def _ends(neighbors: Neighbors) -> tuple[np.ndarray, np.ndarray]:
    """The devices in the slots of lists, and the devices of the rows."""
    if isinstance(neighbors, SplitLists):
        oneself = np.arange(neighbors.devices)
        own = np.concatenate([oneself, np.asarray(neighbors.owners)])
        return np.asarray(neighbors.neighbors), own[:, None]
    behind = np.asarray(neighbors)
    return behind, np.arange(len(behind))[:, None]


def to_matrix(links: np.ndarray, devices: int) -> np.ndarray:
    """The adjacency matrix of links (link, 2)."""
    adjacency = np.zeros((devices, devices), bool)
    adjacency[links[:, 0], links[:, 1]] = adjacency[links[:, 1], links[:, 0]] = True
    return adjacency


def in_slots(links: np.ndarray, network: Network) -> np.ndarray:
    """Whether each slot of a network (row, slot) is one of these links (link, 2)."""
    devices = devices_of(network)
    if network.neighbors is None:
        return to_matrix(links, devices)
    numbers = links.min(1).astype(np.int64) * devices + links.max(1)
    return np.isin(exact_link_numbers(network), numbers) & np.asarray(network.links)


def devices_of(network: Network) -> int:
    """Number of devices, m."""
    links, neighbors = network
    return neighbors.devices if isinstance(neighbors, SplitLists) else links.shape[-2]


def exact_link_numbers(network: Network) -> np.ndarray:
    """The number i·m + j of the link i < j of each slot."""
    devices = devices_of(network)
    one, other = _exact_ends(network)
    return np.minimum(one, other) * devices + np.maximum(one, other)


def _exact_ends(network: Network) -> tuple[np.ndarray, np.ndarray]:
    """The device of each row, and the device in each slot, in 64 bits."""
    if network.neighbors is None:
        oneself = np.arange(len(network.links), dtype=np.int64)
        return oneself[:, None], oneself[None]
    behind, own = _ends(network.neighbors)
    return own.astype(np.int64), behind.astype(np.int64)


def link_numbers(devices: int, neighbors: Neighbors) -> UInt32[Array, "row slot"]:
    """A number for the link of every slot, the same at both ends.

    It has 32 bits, as in the compiled program: above 65,535 devices some links share a number.
    """
    oneself = jnp.arange(devices, dtype=jnp.uint32)
    one, other = of_rows(oneself, neighbors), behind_slots(oneself, neighbors)
    return jnp.minimum(one, other) * devices + jnp.maximum(one, other)


def of_rows(values: Any, neighbors: Neighbors) -> Any:
    """The values (device,) of the devices of all rows, to be combined with (row, slot)."""
    if isinstance(neighbors, SplitLists):
        further = values[..., neighbors.owners]
        return jnp.concatenate([values, further], axis=-1)[..., None]
    return values[..., :, None]


def behind_slots(values: Any, neighbors: Neighbors) -> Any:
    """The values (device,) of the devices in all slots, to be combined with (row, slot)."""
    if neighbors is None:
        return values[..., None, :]
    return values[neighbors.neighbors if isinstance(neighbors, SplitLists) else neighbors]


def at_either_end(values: Any, neighbors: Neighbors) -> Any:
    """Whether something is true of the device of a row or of that in a slot."""
    return of_rows(values, neighbors) | behind_slots(values, neighbors)


def sum_of_slots(
    slots: Shaped[Array, "row slot"], neighbors: Neighbors = None
) -> Shaped[Array, "device"]:
    """The sum of the values in all slots of each device."""
    if isinstance(neighbors, SplitLists):
        return sum_of_rows(slots.sum(1), neighbors)
    return slots.sum(1)


def as_matrix(
    slots: Shaped[Array, "*leading row slot"], neighbors: Neighbors
) -> Shaped[Array, "*leading device device"]:
    """Values per slot as a matrix."""
    if neighbors is None:
        return slots
    *leading, _, _ = slots.shape
    devices = devices_of(Network(slots, neighbors))
    oneself = jnp.arange(devices)
    empty = jnp.zeros((*leading, devices, devices), slots.dtype)
    return empty.at[..., of_rows(oneself, neighbors), behind_slots(oneself, neighbors)].max(slots)


def refitted(
    slots: Shaped[Array, "*leading row slot"], before: Network, after: Network
) -> Shaped[Array, "*leading new_row new_slot"]:
    """Values per slot of a network, moved to the slots that `pad_networks` gave it; on the host."""
    if after.neighbors is None:
        return as_matrix(slots, before.neighbors)
    devices = devices_of(after)
    one, other = _exact_ends(before)
    new_one, new_other = _exact_ends(after)
    is_link, is_new_link = one != other, new_one != new_other
    numbers, wanted = (one * devices + other)[is_link], (new_one * devices + new_other)[is_new_link]
    order = np.argsort(numbers)
    values = np.asarray(slots)
    moved = np.zeros((*values.shape[:-2], *is_new_link.shape), values.dtype)
    moved[..., is_new_link] = values[..., is_link][
        ..., order[np.searchsorted(numbers, wanted, sorter=order)]
    ]
    return jnp.asarray(moved)


def pad_networks(networks: list[Network]) -> list[Network]:
    """The networks in the same storage and size, so that they can be stacked."""
    lists = [network.neighbors for network in networks if network.neighbors is not None]
    if not lists:
        return networks
    if len(lists) < len(networks):  # a dense graph among sparse ones: matrices for all
        return [Network(as_matrix(*network)) for network in networks]
    slots = max(network.links.shape[1] for network in networks)
    found = [_without_missing_links(each) for each in _of_equal_shape(networks, slots)]
    return [
        new._replace(links=refitted(old.links, old, new))
        for old, new in zip(networks, found, strict=True)
    ]


def _of_equal_shape(networks: list[Network], slots: int) -> Sequence[Neighbors]:
    """The lists of networks with so many slots in each row, all split if one of them is."""
    if any(isinstance(network.neighbors, SplitLists) for network in networks):
        return padded([split_lists(_both_directions(one), devices_of(one), slots) for one in networks])
    return [_with_slots(network.neighbors, slots) for network in networks]


def _both_directions(network: Network) -> np.ndarray:
    """The links of lists in both directions (link, 2)."""
    one, other = np.broadcast_arrays(*_exact_ends(network))
    return np.stack([one, other], axis=-1)[one != other]


def _with_slots(neighbors: Any, slots: int) -> Int[Array, "device new_slot"]:
    more = slots - neighbors.shape[1]
    oneself = np.arange(len(neighbors), dtype=neighbors.dtype)[:, None]
    return jnp.concatenate([neighbors, np.broadcast_to(oneself, (len(neighbors), more))], axis=1)


def _rounded_up(slots: int) -> int:
    """Up to an even number, above 16 to a multiple of 8: similar networks then share programs."""
    multiple = _FEW_TOGETHER if slots <= _FEW else _SLOTS_TOGETHER
    return max(1, -(-slots // multiple)) * multiple
