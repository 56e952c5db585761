"""LeNet5: three convolutions and two dense layers with tanh, under the cross-entropy. Not convex."""

from __future__ import annotations

import jax.numpy as jnp
import optax
from flax import nnx
from jaxtyping import Array, Float

from efhc_jax.errors import ExperimentError
from efhc_jax.models.base import PIXEL_MEAN, PIXEL_STD, Model
from efhc_jax.models.flax_nnx import from_nnx

_BACKGROUND = -PIXEL_MEAN / PIXEL_STD  # what a black pixel is after normalisation
_uniform = nnx.initializers.variance_scaling(1 / 3, "fan_in", "uniform")  # within ±1/√fan_in


class LeNet5(nnx.Module):
    """conv 6@5×5, pool, conv 16@5×5, pool, conv 120@5×5, dense 84, dense 10."""

    def __init__(self, classes: int, *, rngs: nnx.Rngs):
        def conv(inputs: int, outputs: int) -> nnx.Conv:
            return nnx.Conv(
                inputs, outputs, (5, 5), padding="VALID", kernel_init=_uniform, rngs=rngs
            )

        self.conv1, self.conv2, self.conv3 = conv(1, 6), conv(6, 16), conv(16, 120)
        self.dense1 = nnx.Linear(120, 84, kernel_init=_uniform, rngs=rngs)
        self.dense2 = nnx.Linear(84, classes, kernel_init=_uniform, rngs=rngs)

    def __call__(self, images: Float[Array, "batch 28 28"]) -> Float[Array, "batch class"]:
        """Scores of each class; images are framed with background to 32×32 first."""
        frame = ((0, 0), (2, 2), (2, 2))
        x = jnp.pad(images, frame, constant_values=_BACKGROUND)[..., None]
        x = _mean_pool(jnp.tanh(self.conv1(x)))
        x = _mean_pool(jnp.tanh(self.conv2(x)))
        x = jnp.tanh(self.conv3(x)).reshape(len(x), -1)
        return self.dense2(jnp.tanh(self.dense1(x)))


def _mean_pool(x: Float[Array, "batch height width channel"]) -> Array:
    return nnx.avg_pool(x, (2, 2), strides=(2, 2))


def lenet5(image_shape: tuple[int, int], classes: int) -> Model:
    """LeNet5; n = 61,706 for ten classes."""
    if image_shape != (28, 28):
        raise ExperimentError(f"model='lenet5': takes 28×28 images, the dataset has {image_shape}")
    return from_nnx(
        lambda rngs: LeNet5(classes, rngs=rngs), optax.softmax_cross_entropy_with_integer_labels
    )
