"""Storage of a network: a matrix of links for few devices, neighbour lists for many.

In both, links are an array with a row per device and a column, a *slot*, per device that it may be
linked to. In the matrix, slot j of every device is device j. In lists, slot s of device i is
`neighbors[i, s]`; unused slots contain the device itself and are never up. Computations on links are the
same for both; only looking up the device in a slot differs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Shaped, UInt32

_MATRIX_UP_TO = 64  # devices
_SLOTS_TOGETHER = 8  # the length of a list is a multiple of this


class Network(NamedTuple):
    """The links of one network, in slots."""

    links: Bool[Array, "device slot"]
    neighbors: Int[Array, "device slot"] | None = None  # None for the matrix


def make_network(links: np.ndarray, devices: int, room: int = 0) -> Network:
    """A network from its links (link, 2), as a matrix or as lists, whichever is cheaper.

    If the neighbours of a device can change, `room` is the largest number that it can have.
    """
    degree = np.bincount(links.ravel(), minlength=devices)
    slots, is_matrix = stored_slots(devices, max(room, int(degree.max(initial=0))))
    if is_matrix:
        return Network(jnp.asarray(to_matrix(links, devices)))
    both = np.concatenate([links, links[:, ::-1]])
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    first = np.concatenate([[0], np.cumsum(degree)])[:-1]
    slot = np.arange(len(both)) - np.repeat(first, degree)
    neighbors = np.repeat(np.arange(devices, dtype=np.int32)[:, None], slots, axis=1)
    neighbors[both[:, 0], slot] = both[:, 1]
    return Network(jnp.asarray(neighbors != np.arange(devices)[:, None]), jnp.asarray(neighbors))


def stored_slots(devices: int, degree: int) -> tuple[int, bool]:
    """The slots that each device has where no degree is larger, and whether they are a matrix.

    Example:
        >>> stored_slots(1000, 20), stored_slots(1000, 999)
        ((24, False), (1000, True))
    """
    slots = _rounded_up(degree)
    if devices <= _MATRIX_UP_TO or 4 * slots > devices:
        return devices, True
    return slots, False


def to_matrix(links: np.ndarray, devices: int) -> np.ndarray:
    """The adjacency matrix of links (link, 2)."""
    adjacency = np.zeros((devices, devices), bool)
    adjacency[links[:, 0], links[:, 1]] = adjacency[links[:, 1], links[:, 0]] = True
    return adjacency


def in_slots(links: np.ndarray, network: Network) -> np.ndarray:
    """Whether each slot of a network (device, slot) is one of these links (link, 2)."""
    devices = len(network.links)
    if network.neighbors is None:
        return to_matrix(links, devices)
    numbers = links.min(1).astype(np.int64) * devices + links.max(1)
    return np.isin(exact_link_numbers(network), numbers) & np.asarray(network.links)


def exact_link_numbers(network: Network) -> np.ndarray:
    """The number i·m + j of the link i < j of each slot."""
    devices = len(network.links)
    oneself = np.arange(devices, dtype=np.int64)
    other = oneself[None] if network.neighbors is None else oneself[np.asarray(network.neighbors)]
    return np.minimum(oneself[:, None], other) * devices + np.maximum(oneself[:, None], other)


def link_numbers(
    devices: int, neighbors: Int[Array, "device slot"] | None
) -> UInt32[Array, "device slot"]:
    """A number for the link of every slot, the same at both ends.

    It has 32 bits, as in the compiled program: above 65,535 devices some links share a number.
    """
    oneself = jnp.arange(devices, dtype=jnp.uint32)
    other = behind_slots(oneself, neighbors)
    return jnp.minimum(oneself[:, None], other) * devices + jnp.maximum(oneself[:, None], other)


def behind_slots(values: Any, neighbors: Int[Array, "device slot"] | None) -> Any:
    """The values (device,) of the devices in all slots, to be combined with (device, slot)."""
    return values[..., None, :] if neighbors is None else values[neighbors]


def as_matrix(
    slots: Shaped[Array, "*leading device slot"], neighbors: Int[Array, "device slot"] | None
) -> Shaped[Array, "*leading device device"]:
    """Values per slot as a matrix."""
    if neighbors is None:
        return slots
    *leading, devices, _ = slots.shape
    rows = jnp.arange(devices)[:, None]
    empty = jnp.zeros((*leading, devices, devices), slots.dtype)
    return empty.at[..., rows, neighbors].max(slots)


def refitted(
    slots: Shaped[Array, "*leading device slot"], before: Network, after: Network
) -> Shaped[Array, "*leading device new_slot"]:
    """Values per slot of a network, moved to the slots that `pad_networks` gave it."""
    if after.neighbors is None:
        return as_matrix(slots, before.neighbors)
    more = after.links.shape[1] - slots.shape[-1]
    return jnp.pad(slots, [(0, 0)] * (slots.ndim - 1) + [(0, more)])


def pad_networks(networks: list[Network]) -> list[Network]:
    """The networks in the same storage and size, so that they can be stacked."""
    kinds = {network.neighbors is None for network in networks}
    if kinds == {True}:
        return networks
    if len(kinds) > 1:  # a dense graph among sparse ones: matrices for all
        return [Network(as_matrix(*network)) for network in networks]
    slots = max(network.links.shape[1] for network in networks)
    return [_with_slots(network, slots) for network in networks]


def _with_slots(network: Network, slots: int) -> Network:
    links, neighbors = network
    if neighbors is None:
        return network
    more = slots - links.shape[1]
    oneself = jnp.broadcast_to(
        jnp.arange(len(links), dtype=neighbors.dtype)[:, None], (len(links), more)
    )
    return Network(
        jnp.pad(links, ((0, 0), (0, more))), jax.lax.concatenate([neighbors, oneself], dimension=1)
    )


def _rounded_up(slots: int) -> int:
    return max(1, -(-slots // _SLOTS_TOGETHER)) * _SLOTS_TOGETHER
