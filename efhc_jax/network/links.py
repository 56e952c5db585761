"""Links that carry parameters: v_ij(k), from the broadcasts of the devices at their ends."""

from __future__ import annotations

from typing import Any

from jaxtyping import ArrayLike, Bool

from efhc_jax.network.slots import Neighbors, at_either_end


def used_links(
    adjacency: Bool[ArrayLike, "... row slot"],
    previous: Bool[ArrayLike, "... row slot"],
    fired: Bool[ArrayLike, "... device"],
    neighbors: Neighbors = None,
) -> Any:
    """Links that carry parameters now: an end fired, or the link is new (Events 1 and 2).

    v_ij(k) = A_ij(k) ∧ (v_i(k) ∨ v_j(k) ∨ ¬A_ij(k−1))

    Args:
        adjacency: A(k), as an array of NumPy or JAX; several iterations may come first.
        previous: A(k−1).
        fired: v(k).
        neighbors: the devices in the slots; None for matrices.

    Returns:
        Booleans in the shape of `adjacency`, of the same library.
    """
    links: Any = adjacency
    before: Any = previous
    fires: Any = fired
    appeared = links & ~before
    return links & (at_either_end(fires, neighbors) | appeared)
