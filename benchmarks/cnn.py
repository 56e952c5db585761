"""A user's CNN, as a user would write and register it."""

from __future__ import annotations

import optax
from flax import nnx
from jaxtyping import Array, Float

from efhc_jax.models import MODELS
from efhc_jax.models.base import Model
from efhc_jax.models.flax_nnx import from_nnx


class CNN(nnx.Module):
    """Two convolutions with max pooling, and two dense layers; n = 105,866 for 28×28 images."""

    def __init__(self, classes: int, rngs: nnx.Rngs):
        self.conv1 = nnx.Conv(1, 16, (3, 3), rngs=rngs)
        self.conv2 = nnx.Conv(16, 32, (3, 3), rngs=rngs)
        self.dense1 = nnx.Linear(7 * 7 * 32, 64, rngs=rngs)
        self.dense2 = nnx.Linear(64, classes, rngs=rngs)

    def __call__(self, images: Float[Array, "batch 28 28"]) -> Float[Array, "batch class"]:
        """Scores of each image."""
        x = images[..., None]
        for layer in (self.conv1, self.conv2):
            x = nnx.max_pool(nnx.relu(layer(x)), (2, 2), strides=(2, 2))
        x = nnx.relu(self.dense1(x.reshape(len(x), -1)))
        return self.dense2(x)


def cnn(image_shape: tuple[int, int], classes: int) -> Model:
    """The module as a model."""
    loss = optax.softmax_cross_entropy_with_integer_labels
    return from_nnx(lambda rngs: CNN(classes, rngs), loss)


MODELS["cnn"] = cnn
