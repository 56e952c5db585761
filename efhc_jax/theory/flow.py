"""Assumption 6: connectivity of the network over time, and waits between broadcasts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from efhc_jax.network.connectivity import broadcast_waits, connection_window, graphs_of, promised_window
from efhc_jax.theory.findings import UNKNOWN, Finding


def physical_connectivity(adjacency: ArrayLike) -> Finding:
    """Assumption 6a: for some B1, the union of any B1 consecutive physical graphs is connected.

    Args:
        adjacency: (step, device, device), or (device, device) for a graph that never changes; only
            the latter determines future iterations.

    Returns:
        A finding whose value is B1, None if the union of all graphs is not connected.

    Example:
        >>> physical_connectivity([[0, 1], [1, 0]])[1:4]
        ('holds', 'B1 = 1: the graph never changes and is connected', 1.0)
    """
    name = "connectivity of the physical graph (Assumption 6a)"
    graphs = graphs_of("adjacency", adjacency)
    window = connection_window(graphs)
    if graphs.ndim == 2:
        if window is None:
            return Finding(name, "does not hold", "the graph never changes and is not connected", None)
        return Finding(name, "holds", "B1 = 1: the graph never changes and is connected", 1.0)
    if window is None:
        figure = f"the union of all {len(graphs):,} graphs is not connected"
        return Finding(name, UNKNOWN, figure, None)
    return Finding(name, UNKNOWN, f"B1 = {window:,} over {len(graphs):,} iterations", float(window))


def bounded_waits(fired: ArrayLike) -> Finding:
    """Assumption 6b: for some B2, every device broadcasts in any B2 consecutive iterations.

    Args:
        fired: broadcasts (step, device).

    Returns:
        A finding whose value is the longest wait of each device; B2 is at least the largest.

    Example:
        >>> bounded_waits([[1, 0], [1, 0], [0, 1], [1, 0]]).figure
        'B2 = 3 over 4 iterations; device by device 2, 3'
    """
    fired = np.asarray(fired, bool)
    waits = broadcast_waits(fired)
    each = ", ".join(f"{wait:,}" for wait in waits)
    figure = f"B2 = {waits.max():,} over {len(fired):,} iterations; device by device {each}"
    silent = np.flatnonzero(~fired.any(0)).tolist()
    if silent:
        figure += f"; never from {', '.join(map(str, silent))}"
    name = "bounded waits between broadcasts (Assumption 6b)"
    return Finding(name, UNKNOWN, figure, [float(wait) for wait in waits])


def information_flow(used_links: ArrayLike, physical_window: int | None, longest_wait: int) -> Finding:
    """Consequence of Assumption 6: the links in use over any B = (l + 2)·B1 iterations are connected.

    It follows from B1 and B2, for a run as for all time: a link that is up B2 − 1 iterations after the
    start of a window either appeared since, and was used then, or its ends have broadcast since. So
    B1 + B2 − 1 iterations are enough.

    Args:
        used_links: (step, device, device).
        physical_window: B1 of the run.
        longest_wait: B2 of the run.

    Returns:
        A finding about the run, whose value is the smallest B within it.

    Example:
        >>> pair, nothing = [[0, 1], [1, 0]], [[0, 0], [0, 0]]
        >>> information_flow([pair, nothing, nothing, pair], 1, 3)[1:4]
        ('holds', "B = 3 over 4 iterations; the paper's (l+2)·B1 = 4", 3.0)
    """
    name = "connectivity of the information flow (after Assumption 6)"
    links = graphs_of("used_links", used_links, steps=True)
    window = connection_window(links)
    seen = f"B = {window:,} over" if window else "the links in use are not connected over all"
    figure = f"{seen} {len(links):,} iterations; the paper's (l+2)·B1 "
    value = None if window is None else float(window)
    if physical_window is None:
        return Finding(name, UNKNOWN, figure + "is not known without B1", value)
    promised = promised_window(physical_window, longest_wait)
    figure += f"= {promised:,}"
    if window is not None and window <= promised:
        return Finding(name, "holds", figure, value)
    if promised > len(links):
        return Finding(name, UNKNOWN, figure, value)
    return Finding(name, "does not hold", figure, value)
