"""A model as a user brings it: a small convolutional network in Flax NNX, registered as `cnn`."""

from __future__ import annotations

import jax
import optax
from flax import nnx

from efhc_jax.models import MODELS
from efhc_jax.models.base import Model
from efhc_jax.models.flax_nnx import from_nnx

NAME = "cnn"


class CNN(nnx.Module):
    """Two 3×3 convolutions with 16 and 32 kernels, ReLU and max pooling, and two dense layers."""

    def __init__(self, rngs: nnx.Rngs):
        self.first = nnx.Conv(1, 16, (3, 3), rngs=rngs)
        self.second = nnx.Conv(16, 32, (3, 3), rngs=rngs)
        self.hidden = nnx.Linear(7 * 7 * 32, 64, rngs=rngs)
        self.last = nnx.Linear(64, 10, rngs=rngs)

    def __call__(self, images: jax.Array) -> jax.Array:
        """Scores of images (batch, 28, 28)."""
        x = images[..., None]
        for convolution in (self.first, self.second):
            x = nnx.max_pool(nnx.relu(convolution(x)), (2, 2), (2, 2))
        return self.last(nnx.relu(self.hidden(x.reshape(len(x), -1))))


def _make(image_shape: tuple[int, int], classes: int) -> Model:
    return from_nnx(lambda rngs: CNN(rngs), optax.softmax_cross_entropy_with_integer_labels)


def register() -> None:
    """Make the model known to this process."""
    if NAME not in MODELS:
        MODELS[NAME] = _make
