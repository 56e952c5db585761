"""A quadratic problem with a closed-form optimum, for tests: one centroid per class."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from efhc_jax.models.base import Model
from efhc_jax.models.properties import Properties

# F is quadratic and bounded below. The gradients w_y − x grow with the weights, without bound.
PROPERTIES = Properties(convex=True, has_minimiser=True, lowest_loss=0.0)


def quadratic(image_shape: tuple[int, int], classes: int) -> Model:
    """Nearest centroid: loss ½‖x − w_y‖², scores −½‖x − w_c‖²; n = 7,840 for 28×28 in ten classes.

    Every step with α ≤ 1 moves a centroid towards a sample, so it does not diverge.
    """
    inputs = math.prod(image_shape)

    def init(key: Key[Array, ""]) -> Float[Array, "class input"]:
        return jax.random.normal(key, (classes, inputs))

    def logits(
        row: Float[Array, "*parameters"], images: Float[Array, "batch height width"]
    ) -> Float[Array, "batch class"]:
        centroids = row.reshape(classes, inputs)
        flat = images.reshape(len(images), inputs)
        lengths = jnp.sum(flat**2, axis=1, keepdims=True) + jnp.sum(centroids**2, axis=1)
        return flat @ centroids.T - 0.5 * lengths

    def loss(logits: Float[Array, "batch class"], labels: Int[Array, "batch"]) -> Float[Array, "batch"]:
        return -jnp.take_along_axis(logits, labels[:, None], axis=-1)[:, 0]

    return Model(classes * inputs, init, logits, loss, properties=PROPERTIES)


def optimum(images: np.ndarray, labels: np.ndarray, shards: list[np.ndarray]) -> np.ndarray:
    """The minimiser of F = (1/m) Σ_i F_i, with F_i the mean loss over device i's samples.

    Args:
        images: normalised images (sample, height, width).
        labels: their classes.
        shards: the sample indices of each device.

    Returns:
        The flat row of class means, with each sample weighted by the inverse size of its device's data.
    """
    flat = images.reshape(len(images), -1)
    classes = int(labels.max()) + 1
    weight = np.zeros(len(images))
    for shard in shards:
        weight[shard] = 1 / len(shard)
    per_class = (labels == np.arange(classes)[:, None]) * weight
    return ((per_class @ flat) / per_class.sum(1, keepdims=True)).ravel()
