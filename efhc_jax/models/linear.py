"""Linear classifiers: weights and a bias per class.

Parameters are stored class by class, with the bias as the weight of an additional input that is always
1. The gradient of a sample is then a single outer product, and the long axis is contiguous.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from efhc_jax.models.base import Loss, Model


def linear(image_shape: tuple[int, int], classes: int, loss: Loss) -> Model:
    """A linear model with bias and the given loss."""
    inputs = math.prod(image_shape) + 1

    def init(key: Key[Array, ""]) -> Float[Array, "class input"]:
        """Weights and biases uniform within ±1/√inputs."""
        bound = 1 / math.sqrt(inputs - 1)
        return jax.random.uniform(key, (classes, inputs), minval=-bound, maxval=bound)

    def logits(
        row: Float[Array, "class input"], images: Float[Array, "batch height width"]
    ) -> Float[Array, "batch class"]:
        flat = images.reshape(len(images), -1)
        augmented = jnp.concatenate([flat, jnp.ones_like(flat[:, :1])], axis=1)
        # In this order the weights are not transposed, which for one sample takes longer than the
        # product itself.
        return (row.reshape(classes, inputs) @ augmented.T).T

    return Model(classes * inputs, init, logits, loss)
