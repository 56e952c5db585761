"""Connectivity of changing networks over time, and waits between broadcasts.

Graphs over time are adjacency (step, device, device), or one matrix for a graph that never changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from efhc_jax.errors import ExperimentError

if TYPE_CHECKING:
    from efhc_jax.policies import Policy

Link = tuple[int, int, int]  # the iteration in which it was last up, and its two ends


def links_in_use(policy: Policy, fired: ArrayLike, adjacency: ArrayLike) -> np.ndarray:
    """Links that carried parameters under a policy, exactly as in the run.

    With a coordinator there are none; links that are only new count if the policy uses new links.

    Args:
        policy: the policy of the run.
        fired: broadcasts (step, device).
        adjacency: (step, device, device), or (device, device) for a graph that never changes.

    Returns:
        Booleans (step, device, device).
    """
    used = used_links_of(fired, adjacency, new_links=policy.uses_new_links)
    return np.zeros_like(used) if policy.coordinated else used


def used_links_of(fired: ArrayLike, adjacency: ArrayLike, new_links: bool = True) -> np.ndarray:
    """Links that carried parameters in each iteration, from the broadcasts; A(−1) = A(0).

    Args:
        fired: v, broadcasts (step, device).
        adjacency: A, (step, device, device), or (device, device) for a graph that never changes.
        new_links: whether a new link is used even if neither end fires.

    Returns:
        Booleans (step, device, device).

    Example:
        >>> pair = [[0, 1], [1, 0]]
        >>> used_links_of([[0, 0], [0, 1]], pair)[:, 0, 1].tolist()
        [False, True]
    """
    from efhc_jax.network.links import used_links

    fired = np.asarray(fired, bool)
    if fired.ndim != 2:
        raise ExperimentError(f"fired: has shape {fired.shape}; give (step, device)")
    graphs = graphs_of("adjacency", adjacency, fired.shape)
    before = graphs
    if new_links and graphs.ndim == 3:
        before = np.concatenate([graphs[:1], graphs[:-1]])
    return used_links(graphs, before, fired)


def connection_window(graphs: ArrayLike) -> int | None:
    """The smallest B such that the union of any B consecutive graphs is connected.

    Exact over the windows within the run. The algorithm keeps a spanning tree of the most recent links,
    newest first: a window that ends now is connected if it reaches back to the oldest link of the tree.
    A link that has dropped out of the tree does not return until it is up again, so each iteration only
    merges the tree with its own links.

    Args:
        graphs: links (step, device, device), or (device, device) for a graph that never changes.

    Returns:
        B, or None if the union of all graphs is not connected.

    Example:
        >>> left = [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
        >>> right = [[0, 0, 0], [0, 0, 1], [0, 1, 0]]
        >>> connection_window([left, right, left, left, right])
        3
        >>> connection_window([left, left]) is None
        True
    """
    graphs = graphs_of("graphs", graphs)
    sequence = graphs[None] if graphs.ndim == 2 else graphs
    steps, devices, _ = sequence.shape
    if devices == 1:
        return 1 if steps else None
    first, which = distinct(sequence)
    forests = [_forest(_links(sequence[step]), devices) for step in first]
    tree: list[Link] = []
    window = 0
    for step, pattern in enumerate(which.tolist()):
        now = [(step, i, j) for _, i, j in forests[pattern]]
        tree = _forest(now + tree, devices) if now else tree
        if len(tree) == devices - 1:
            oldest = tree[-1][0] if window else 0  # no window that ends earlier is connected
            window = max(window, step - oldest + 1)
    return window or None


def broadcast_waits(fired: ArrayLike) -> np.ndarray:
    """The longest wait of each device for its next broadcast, in iterations.

    It is the smallest B2 of that device: one more than the longest sequence of iterations without a
    broadcast. The first wait starts before iteration 0; the last is cut off by the end of the run and
    counts with its length so far.

    Args:
        fired: broadcasts (step, device).

    Returns:
        Integers (device,), 1 for a device that always broadcasts.

    Example:
        >>> broadcast_waits([[1, 0], [1, 0], [0, 1], [1, 0]]).tolist()
        [2, 3]
    """
    fired = np.asarray(fired, bool)
    if fired.ndim != 2:
        raise ExperimentError(f"fired: has shape {fired.shape}; give (step, device)")
    ends = np.ones((1, fired.shape[1]), bool)
    padded = np.concatenate([ends, fired, ends])
    return np.array([np.diff(np.flatnonzero(column)).max() for column in padded.T], dtype=int)


def promised_window(physical_window: int, longest_wait: int) -> int:
    """The paper's B = (l + 2)·B1, where l·B1 < B2 ≤ (l + 1)·B1.

    Args:
        physical_window: B1.
        longest_wait: B2.

    Example:
        >>> promised_window(5, 12)
        20
    """
    return (-(-longest_wait // physical_window) + 1) * physical_window


def graphs_of(
    name: str, graphs: Any, like: tuple[int, ...] | None = None, steps: bool = False
) -> np.ndarray:
    """The graphs as a boolean array; raise if their shape does not match `like` (step, device)."""
    array = np.asarray(graphs, bool)
    fits = array.ndim in ((3,) if steps else (2, 3)) and array.shape[-1] == array.shape[-2] > 0
    if fits and like is not None:
        fits = array.shape[-1] == like[1] and (array.ndim == 2 or len(array) == like[0])
    if not fits:
        wanted = "(step, device, device)" + ("" if steps else " or (device, device)")
        wanted += "" if like is None else f" for {like[0]} steps and {like[1]} devices"
        raise ExperimentError(f"{name}: has shape {array.shape}; give {wanted}")
    return array


def distinct(*sequences: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The step at which each distinct entry first occurs, and the index of the entry of each step."""
    steps = len(sequences[0])
    bits = np.concatenate([np.packbits(s.reshape(steps, -1), axis=1) for s in sequences], axis=1)
    rows = np.ascontiguousarray(bits).view(np.dtype((np.void, bits.shape[1]))).ravel()
    _, first, which = np.unique(rows, return_index=True, return_inverse=True)
    return first, which


def _links(graph: np.ndarray) -> list[Link]:
    return [(0, i, j) for i, j in np.argwhere(np.triu(graph | graph.T, 1)).tolist()]


def _forest(links: list[Link], devices: int) -> list[Link]:
    """A spanning forest: the links that connect components of the links before them."""
    leader = list(range(devices))
    kept: list[Link] = []
    for link in links:
        _, i, j = link
        while leader[i] != i:
            i = leader[i]
        while leader[j] != j:
            j = leader[j]
        if i != j:
            leader[i] = j
            kept.append(link)
            if len(kept) == devices - 1:
                break
    return kept
