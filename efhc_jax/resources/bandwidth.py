"""Cost of communication: bandwidths of the devices, and transmission times."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from efhc_jax.network.slots import Neighbors, sum_of_slots


def bandwidths(
    devices: int, weak_devices: int, weak: float, strong: float, rng: np.random.Generator
) -> np.ndarray:
    """b_i of each device: some are weak, the others strong.

    The weak devices are the first in a random order, so that for the same seed a larger H makes more
    devices weak and no weak device strong.
    """
    order = rng.permutation(devices)
    bandwidth = np.full(devices, strong)
    bandwidth[order[:weak_devices]] = weak
    return bandwidth


def transmission_time(
    used_links: Bool[Array, "row slot"],
    adjacency: Bool[Array, "row slot"],
    bandwidth: Float[Array, "device"],
    parameters: int,
    neighbors: Neighbors = None,
) -> Float[Array, ""]:
    """Mean over devices of the fraction of their links in use, times n/b_i.

    (1/m) Σ_i (Σ_j v_ij / d_i) · n / b_i; a device without a link adds 0.
    """
    degree = jnp.maximum(sum_of_slots(adjacency, neighbors), 1)
    return jnp.mean(sum_of_slots(used_links, neighbors) / degree * (parameters / bandwidth))


def upload_time(bandwidth: Float[Array, "device"], parameters: int) -> Float[Array, ""]:
    """Time of one upload per device to a coordinator: (1/m) Σ_i n / b_i."""
    return jnp.mean(parameters / bandwidth)
