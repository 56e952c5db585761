"""Selection of the part of a large network that is drawn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from efhc_jax.report.packing import some_of


class Limits(NamedTuple):
    """Largest numbers of devices and links of a network that are drawn."""

    devices: int
    links: int


class Part(NamedTuple):
    """The devices and links of a network that are drawn."""

    devices: np.ndarray  # their numbers, in increasing order
    chosen: np.ndarray  # positions of the links among all links
    links: np.ndarray  # int (link, 2), ends as positions among these devices


def drawn_part(links: np.ndarray, devices: int, limits: Limits) -> Part:
    """The whole network if it fits, or the devices that are the fewest hops from device 0.

    Of the links between these devices, a spanning tree is kept, so that they stay connected, and an
    evenly spaced selection of the others.

    Args:
        links: int (link, 2), the smaller device first.
        devices: number of devices.
        limits: limits of the part that is drawn.

    Example:
        >>> ring = np.array([[0, 1], [0, 5], [1, 2], [2, 3], [3, 4], [4, 5]])
        >>> part = drawn_part(ring, 6, Limits(devices=4, links=9))
        >>> part.devices.tolist(), part.links.tolist()
        ([0, 1, 2, 5], [[0, 1], [0, 3], [1, 2]])
    """
    if devices <= limits.devices and len(links) <= limits.links:
        return Part(np.arange(devices), np.arange(len(links)), links)
    order, before = _by_hops(links, devices, limits.devices)
    shown = np.sort(order)
    inside = np.flatnonzero(np.isin(links, shown).all(1))
    if len(inside) > limits.links:
        reached = order[before[order] >= 0]
        tree = np.sort(np.stack([before[reached], reached], axis=1), axis=1) @ [devices, 1]
        needed = np.isin(links[inside] @ [devices, 1], tree)
        others = inside[~needed]
        some = others[some_of(len(others), max(0, limits.links - int(needed.sum())))]
        inside = np.sort(np.concatenate([inside[needed], some]))
    return Part(shown, inside, np.searchsorted(shown, links[inside]))


def _by_hops(links: np.ndarray, devices: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    """The first devices by hops from device 0, and the predecessor of each; negative if it has none.

    If the network is disconnected, the next component starts at its lowest device.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order

    graph = coo_array((np.ones(len(links), bool), tuple(links.T)), shape=(devices, devices)).tocsr()
    order, before = np.zeros(0, int), np.full(devices, -1)
    seen = np.zeros(devices, bool)
    while len(order) < min(most, devices):
        found, through = breadth_first_order(graph, int(seen.argmin()), directed=False)
        order, seen[found], before[found] = np.append(order, found), True, through[found]
    return order[:most], before
