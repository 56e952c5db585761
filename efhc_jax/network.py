"""How a network is stored: a matrix of links for few devices, lists of neighbours for many.

In both, links are an array with a row for each device and a column, a *slot*, for each device that it
may be linked to. In the matrix, slot j of every device is device j. In lists, slot s of device i is
`neighbors[i, s]`, and the slots that a device does not need hold itself and are never up. What is
computed for links is the same for both; only looking up the device behind a slot differs.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

_MATRIX_UP_TO = 64  # devices
_SLOTS_TOGETHER = 8  # lists are as long as a multiple of this


class Network(NamedTuple):
    """The links of one network, in slots."""

    links: Bool[Array, "device slot"]
    neighbors: Int[Array, "device slot"] | None = None  # None for the matrix


def make_network(links: np.ndarray, devices: int, *, any_pair: bool = False) -> Network:
    """A network from its links (link, 2), as a matrix or as lists, whichever is cheaper.

    Where links may appear between any two devices, it is a matrix.
    """
    degree = np.bincount(links.ravel(), minlength=devices)
    slots = _rounded_up(int(degree.max(initial=0)))
    if any_pair or devices <= _MATRIX_UP_TO or 4 * slots > devices:
        return Network(jnp.asarray(to_matrix(links, devices)))
    both = np.concatenate([links, links[:, ::-1]])
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    first = np.concatenate([[0], np.cumsum(degree)])[:-1]
    slot = np.arange(len(both)) - np.repeat(first, degree)
    neighbors = np.repeat(np.arange(devices, dtype=np.int32)[:, None], slots, axis=1)
    neighbors[both[:, 0], slot] = both[:, 1]
    return Network(jnp.asarray(neighbors != np.arange(devices)[:, None]), jnp.asarray(neighbors))


def to_matrix(links: np.ndarray, devices: int) -> np.ndarray:
    """The adjacency matrix of links (link, 2)."""
    adjacency = np.zeros((devices, devices), bool)
    adjacency[links[:, 0], links[:, 1]] = adjacency[links[:, 1], links[:, 0]] = True
    return adjacency


def behind_slots(values: Array, neighbors: Int[Array, "device slot"] | None) -> Array:
    """The values (device,) of the devices behind all slots, to be combined with (device, slot)."""
    return values[None, :] if neighbors is None else values[neighbors]


def as_matrix(
    slots: Bool[Array, "device slot"], neighbors: Int[Array, "device slot"] | None
) -> Bool[Array, "device device"]:
    """What is stored for slots as a matrix."""
    if neighbors is None:
        return slots
    devices = len(slots)
    rows = jnp.arange(devices)[:, None]
    return jnp.zeros((devices, devices), bool).at[rows, neighbors].max(slots)


def pad_networks(networks: list[Network]) -> list[Network]:
    """Networks of the same kind and size, so that they can be stacked."""
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
