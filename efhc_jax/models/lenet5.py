"""LeNet5: three convolutions and two dense layers with tanh, under the cross-entropy. Not convex.

A convolution is one matrix product of its kernels with all patches of the image. Convolutions whose
kernels differ between devices would otherwise be compiled as grouped ones, which are several times
slower. Arrays are (channel, batch, height, width), so that pixels are contiguous in every product and
the first layer of all devices is a single product when they look at the same images.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Key

from efhc_jax.errors import ExperimentError
from efhc_jax.models.base import PIXEL_MEAN, PIXEL_STD, Model

_KERNEL = 5
_BACKGROUND = -PIXEL_MEAN / PIXEL_STD  # what a black pixel is after normalisation


def lenet5(image_shape: tuple[int, int], classes: int) -> Model:
    """Conv 6@5×5, pool, conv 16@5×5, pool, conv 120@5×5, dense 84, dense 10; n = 61,706.

    The third convolution sees an image of exactly its own size, so it is a dense layer of 400 inputs.
    """
    if image_shape != (28, 28):
        raise ExperimentError(f"model='lenet5': takes 28×28 images, the dataset has {image_shape}")
    layers = [(6, 25), (16, 150), (120, 400), (84, 120), (classes, 84)]  # (outputs, inputs)
    ends = np.cumsum([size for outputs, inputs in layers for size in (outputs * inputs, outputs)])

    def init(key: Key[Array, ""]) -> Float[Array, "parameter"]:
        """Weights and biases uniform within ±1/√inputs of their layer."""
        rows = []
        for layer_key, (outputs, inputs) in zip(jax.random.split(key, 5), layers, strict=True):
            bound = 1 / math.sqrt(inputs)
            size = outputs * inputs + outputs
            rows.append(jax.random.uniform(layer_key, (size,), minval=-bound, maxval=bound))
        return jnp.concatenate(rows)

    def logits(
        row: Float[Array, "parameter"], images: Float[Array, "batch 28 28"]
    ) -> Float[Array, "batch class"]:
        pieces = jnp.split(row, ends[:-1])
        weights = [w.reshape(shape) for w, shape in zip(pieces[::2], layers, strict=True)]
        biases = [b[:, None] for b in pieces[1::2]]
        x = _frame(images)[None]
        for layer in (0, 1):
            x = _mean_pool(jnp.tanh(_convolve(x, weights[layer], biases[layer])))
        x = jnp.moveaxis(x, 1, -1).reshape(-1, len(images))
        for layer in (2, 3):
            x = jnp.tanh(weights[layer] @ x + biases[layer])
        return (weights[4] @ x + biases[4]).T

    return Model(int(ends[-1]), init, logits, optax.softmax_cross_entropy_with_integer_labels)


def _frame(images: Float[Array, "batch 28 28"]) -> Float[Array, "batch 32 32"]:
    """28×28 to 32×32, by a border of background."""
    return jnp.pad(images, ((0, 0), (2, 2), (2, 2)), constant_values=_BACKGROUND)


def _convolve(
    x: Float[Array, "channel batch height width"],
    kernels: Float[Array, "output patch"],
    bias: Float[Array, "output 1"],
) -> Float[Array, "output batch smaller_height smaller_width"]:
    """A 5×5 convolution without padding, as a product of kernels and patches."""
    channels, batch, height, width = x.shape
    height, width = height - _KERNEL + 1, width - _KERNEL + 1
    patches = jnp.stack(
        [
            x[:, :, down : down + height, right : right + width]
            for down in range(_KERNEL)
            for right in range(_KERNEL)
        ],
        axis=1,
    ).reshape(channels * _KERNEL**2, -1)
    return (kernels @ patches + bias).reshape(-1, batch, height, width)


def _mean_pool(x: Float[Array, "channel batch height width"]) -> Array:
    """The mean of every 2×2 square, as four strided slices."""
    rows = x[..., 0::2, :] + x[..., 1::2, :]
    return (rows[..., 0::2] + rows[..., 1::2]) / 4
