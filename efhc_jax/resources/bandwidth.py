"""Cost of communication: bandwidths of the devices, and transmission times."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from efhc_jax.experiment.experiment import Experiment


def bandwidths(experiment: Experiment, rng: np.random.Generator) -> np.ndarray:
    """b_i of each device: H·m of them are weak, and the others have a bandwidth that keeps the mean.

    The weak devices are the first in a random order, so that for the same seed a larger H makes more
    devices weak and no weak device strong.
    """
    order = rng.permutation(experiment.devices)
    bandwidth = np.full(experiment.devices, experiment.strong_bandwidth)
    bandwidth[order[: experiment.weak_devices]] = experiment.weak_bandwidth
    return bandwidth


def transmission_time(
    used_links: Bool[Array, "device slot"],
    adjacency: Bool[Array, "device slot"],
    bandwidth: Float[Array, "device"],
    parameters: int,
) -> Float[Array, ""]:
    """Mean over devices of the fraction of their links in use, times n/b_i.

    (1/m) Σ_i (Σ_j v_ij / d_i) · n / b_i; a device without a link adds 0.
    """
    degree = jnp.maximum(adjacency.sum(1), 1)
    return jnp.mean(used_links.sum(1) / degree * (parameters / bandwidth))


def upload_time(bandwidth: Float[Array, "device"], parameters: int) -> Float[Array, ""]:
    """Time of one upload per device to a coordinator: (1/m) Σ_i n / b_i."""
    return jnp.mean(parameters / bandwidth)
