"""Assumptions 1 and 2: simultaneous exchange, and the weights P(k)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from efhc_jax.network.connectivity import distinct, graphs_of
from efhc_jax.theory.findings import ROUNDING, Finding, Verdict, blocks, judged


def simultaneous_exchange(used_links: ArrayLike) -> Finding:
    """Assumption 1: if i sends to j, then j sends to i in the same iteration; v_ij = v_ji.

    Args:
        used_links: (step, device, device).

    Example:
        >>> simultaneous_exchange([[[0, 1], [0, 0]]]).verdict
        'does not hold'
    """
    links = graphs_of("used_links", used_links)
    one_way = int((links & ~links.swapaxes(-1, -2)).sum())
    figure = f"{one_way:,} of {int(links.sum()):,} transfers were not returned"
    verdict: Verdict = "does not hold" if one_way else "holds"
    return Finding("simultaneous exchange (Assumption 1)", verdict, figure, float(one_way))


def fixed_network(used_links: ArrayLike) -> Finding:
    """Whether the same links carry parameters in every iteration, so that P(k) is always the same.

    Args:
        used_links: (step, device, device).

    Example:
        >>> fixed_network([[[0, 1], [1, 0]], [[0, 0], [0, 0]]]).verdict
        'does not hold'
    """
    links = graphs_of("used_links", used_links)
    other = int((links != links[0]).any(axis=(1, 2)).sum())
    figure = f"{other:,} of {len(links):,} iterations used other links than the first"
    return judged("the same P in all iterations (theory of the method)", not other, figure, float(other))


def transition_matrices(adjacency: ArrayLike, used_links: ArrayLike) -> np.ndarray:
    """P(k) of many iterations in 64 bits; the engine uses `mixing.transition_matrix`.

    p_ij = min(1/(1+d_i), 1/(1+d_j))·v_ij for i ≠ j, p_ii = 1 − Σ_{j≠i} p_ij

    Args:
        adjacency: (device, device) or (…, device, device).
        used_links: (…, device, device).

    Example:
        >>> pair = [[0, 1], [1, 0]]
        >>> transition_matrices(pair, [pair]).tolist()
        [[[0.5, 0.5], [0.5, 0.5]]]
    """
    adjacency, used = np.asarray(adjacency, bool), np.asarray(used_links, bool)
    own = 1 / (1 + adjacency.sum(-1))
    weights = np.where(used & adjacency, np.minimum(own[..., :, None], own[..., None, :]), 0.0)
    diagonal = np.arange(used.shape[-1])
    weights[..., diagonal, diagonal] = 0
    weights[..., diagonal, diagonal] = 1 - weights.sum(-1)
    return weights


def transition_weights(adjacency: ArrayLike, used_links: ArrayLike) -> Finding:
    """Assumption 2: P(k) is symmetric and doubly stochastic, with weights in use of at least η > 0.

    η is the smallest p_ii(k), or p_ij(k) of a link in use. For Metropolis weights it is at least 1/m in
    any graph: p_ij ≥ 1/(1 + max d) and p_ii ≥ 1 − d_i/(1 + d_i).

    Args:
        adjacency: (step, device, device), or (device, device) for a graph that never changes.
        used_links: (step, device, device).

    Returns:
        A finding whose value is η over the run.

    Example:
        >>> path = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
        >>> transition_weights(path, [path]).figure
        'η = 0.333; symmetric, rows and columns sum to 1 within 1e-15 (1 distinct P in 1 iterations)'
    """
    used = graphs_of("used_links", used_links, steps=True)
    steps, devices, _ = used.shape
    graphs = graphs_of("adjacency", adjacency, (steps, devices))
    looked_at = [used] if graphs.ndim == 2 else [used, graphs]
    instants, _ = distinct(*looked_at)  # equal links in equal graphs have equal weights
    smallest, uneven, unbalanced = 1.0, 0.0, 0.0
    for part in blocks(len(instants), devices**2):
        chosen = instants[part]
        matrices = transition_matrices(graphs if graphs.ndim == 2 else graphs[chosen], used[chosen])
        in_use = used[chosen] | np.eye(devices, dtype=bool)
        smallest = float(np.min(matrices, where=in_use, initial=smallest))
        uneven = max(uneven, float(np.abs(matrices - matrices.swapaxes(1, 2)).max()))
        sums = np.concatenate([matrices.sum(1), matrices.sum(2)])
        unbalanced = max(unbalanced, float(np.abs(sums - 1).max()))
    sound = smallest > 0 and max(uneven, unbalanced) <= ROUNDING
    symmetric = "symmetric" if uneven == 0 else f"symmetric within {uneven:.0e}"
    figure = (
        f"η = {smallest:.3g}; {symmetric}, rows and columns sum to 1 within "
        f"{max(unbalanced, 1e-15):.0e} ({len(instants):,} distinct P in {steps:,} iterations)"
    )
    name = "transition weights (Assumption 2)"
    return Finding(name, "holds" if sound else "does not hold", figure, smallest)
