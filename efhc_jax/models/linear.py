"""Linear classifiers: weights and a bias per class.

Parameters are stored class by class, with the bias as the weight of an additional input that is always
1. The gradient of a sample is then a single outer product, and the long axis is contiguous.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from efhc_jax.models.base import Loss, Model, normalise
from efhc_jax.models.products import scores
from efhc_jax.models.properties import NOTHING_KNOWN, Properties

_RIDGE = 1e-6  # added to the variances of the inputs, relative to the largest


def linear(
    image_shape: tuple[int, int], classes: int, loss: Loss, properties: Properties = NOTHING_KNOWN
) -> Model:
    """A linear model with bias and the given loss, and what is known about it."""
    inputs = math.prod(image_shape) + 1

    def init(key: Key[Array, ""]) -> Float[Array, "class input"]:
        """Weights and biases uniform within ±1/√inputs."""
        bound = 1 / math.sqrt(inputs - 1)
        return jax.random.uniform(key, (classes, inputs), minval=-bound, maxval=bound)

    def logits(
        row: Float[Array, "*parameters"], images: Float[Array, "batch height width"]
    ) -> Float[Array, "batch class"]:
        # In this order the weights are not transposed, which for one sample takes longer than the
        # product itself.
        return (row.reshape(classes, inputs) @ _augmented(images).T).T

    def logits_on_cpu(
        row: Float[Array, "*parameters"], images: Float[Array, "batch height width"]
    ) -> Float[Array, "batch class"]:
        if len(images) == 1:
            return logits(row, images)
        return scores(row.reshape(classes, inputs), _augmented(images))

    properties = properties._replace(search_axes=even_axes)
    return Model(
        classes * inputs,
        init,
        logits,
        loss,
        properties=properties,
        logits_on_cpu=logits_on_cpu,
        images_on_accelerators=5000,
    )


def _augmented(images: Float[Array, "batch height width"]) -> Float[Array, "batch input"]:
    """Images as rows that end in a 1, for the bias."""
    flat = images.reshape(len(images), -1)
    return jnp.concatenate([flat, jnp.ones_like(flat[:, :1])], axis=1)


def even_axes(images: np.ndarray) -> np.ndarray:
    """Coordinates in which the inputs of a linear model, including the bias, have equal variances.

    The norm of a model is then about that of its scores.
    """
    seen = np.asarray(normalise(jnp.asarray(images)), np.float32).reshape(len(images), -1)
    inputs = np.concatenate([seen, np.ones((len(seen), 1), np.float32)], axis=1)
    strength, directions = np.linalg.eigh((inputs.T @ inputs / len(inputs)).astype(float))
    return (directions / np.sqrt(strength + _RIDGE * strength.max())) @ directions.T
