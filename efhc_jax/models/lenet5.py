"""LeNet5: three convolutions and two dense layers with tanh and cross-entropy loss. Not convex.

A convolution is a matrix product of its kernels with all patches of the image, or one product per line.
Convolutions whose kernels differ between devices would otherwise be compiled as grouped convolutions,
which are several times slower. Arrays are (channel, height, width, batch), so that a strided slice moves
contiguous memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Key

from efhc_jax.errors import ExperimentError
from efhc_jax.models import products
from efhc_jax.models.base import PIXEL_MEAN, PIXEL_STD, Model
from efhc_jax.models.products import product
from efhc_jax.models.properties import Properties

_KERNEL = 5
_BACKGROUND = -PIXEL_MEAN / PIXEL_STD  # a black pixel after normalisation

# The gradients of a layer grow with the weights of the next, without bound.
PROPERTIES = Properties(convex=False, in_words="is a neural network", lowest_loss=0.0)

_Layer = tuple[Float[Array, "output input"], Float[Array, "output 1"]]  # kernels or weights, and bias
_Product = Callable[[Array, Array], Array]
_Image = Float[Array, "channel height width batch"]
_Smaller = Float[Array, "output smaller_height smaller_width batch"]


def lenet5(image_shape: tuple[int, int], classes: int) -> Model:
    """Conv 6@5×5, pool, conv 16@5×5, pool, conv 120@5×5, dense 84, dense 10; n = 61,706.

    The input of the third convolution has the size of its kernels, so it is a dense layer of 400 inputs.
    """
    if image_shape != (28, 28):
        raise ExperimentError(f"model='lenet5': takes 28×28 images, but the dataset has {image_shape}")
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

    def layers_of(row: Float[Array, "parameter"]) -> list[_Layer]:
        pieces = jnp.split(row, ends[:-1])
        kernels = [piece.reshape(shape) for piece, shape in zip(pieces[::2], layers, strict=True)]
        return [(kernel, bias[:, None]) for kernel, bias in zip(kernels, pieces[1::2], strict=True)]

    def from_patches(
        row: Float[Array, "parameter"],
        patches: Array,
        second_layer: Callable[[_Layer, _Image], _Image],
        multiply: _Product = jnp.matmul,
    ) -> Float[Array, "class batch"]:
        """The network, from the patches of the first layer."""
        first, second, *dense, last = layers_of(row)
        x = _mean_pool(jnp.tanh(_apply(first, patches, multiply)))
        x = second_layer(second, x)
        batch = x.shape[-1]
        x = _at_least_two(x.reshape(-1, batch))
        for kernel, bias in dense:
            x = jnp.tanh(multiply(kernel, x) + bias)
        return (multiply(last[0], x) + last[1])[:, :batch]

    def logits(
        row: Float[Array, "parameter"], images: Float[Array, "batch 28 28"]
    ) -> Float[Array, "batch class"]:
        return from_patches(row, _patches(_frame(images)), _at_once).T

    def logits_on_cpu(
        row: Float[Array, "parameter"], images: Float[Array, "batch 28 28"]
    ) -> Float[Array, "batch class"]:
        return from_patches(row, _patches_on_cpu(_frame(images)), _at_once_on_cpu, product).T

    def logits_of_all(
        rows: Float[Array, "row parameter"], images: Float[Array, "batch 28 28"]
    ) -> Float[Array, "row batch class"]:
        """On a CPU one model at a time, so that activations stay in the cache."""

        def at_once(rows: Array, patches: Array) -> Array:
            return jax.vmap(lambda row: from_patches(row, patches, _at_once).T)(rows)

        def in_turn(rows: Array, patches: Array) -> Array:
            return jax.lax.map(lambda row: from_patches(row, patches, _line_by_line).T, rows)

        patches = _patches(_frame(images))
        return jax.lax.platform_dependent(rows, patches, cpu=in_turn, default=at_once)

    loss = optax.softmax_cross_entropy_with_integer_labels
    return Model(
        int(ends[-1]),
        init,
        logits,
        loss,
        logits_of_all,
        images_at_once=96,
        properties=PROPERTIES,
        logits_on_cpu=logits_on_cpu,
    )


def _frame(images: Float[Array, "batch 28 28"]) -> Float[Array, "1 32 32 batch"]:
    """Images padded from 28×28 to 32×32 with background, with the batch last."""
    border = ((2, 2), (2, 2), (0, 0))
    return jnp.pad(jnp.moveaxis(images, 0, -1), border, constant_values=_BACKGROUND)[None]


def _patches(x: _Image) -> Float[Array, "patch height-4 width-4 batch"]:
    """The patches of a 5×5 convolution without padding."""
    channels, height, width, batch = x.shape
    height, width = height - _KERNEL + 1, width - _KERNEL + 1
    shifted = [
        x[:, down : down + height, right : right + width]
        for down in range(_KERNEL)
        for right in range(_KERNEL)
    ]
    return jnp.stack(shifted, axis=1).reshape(-1, height, width, batch)


def _apply(
    layer: _Layer, patches: Float[Array, "patch height width batch"], multiply: _Product = jnp.matmul
) -> Float[Array, "output height width batch"]:
    """A convolution: kernels times patches."""
    kernels, bias = layer
    _, *shape = patches.shape
    return (multiply(kernels, patches.reshape(len(patches), -1)) + bias).reshape(-1, *shape)


def _at_once(layer: _Layer, x: _Image) -> _Smaller:
    """A convolution, tanh and pooling."""
    return _mean_pool(jnp.tanh(_apply(layer, _patches(x))))


def _patches_on_cpu(x: _Image) -> Float[Array, "patch height-4 width-4 batch"]:
    """The same patches, with a gradient that is faster on a CPU."""
    return products.patches(x, (_KERNEL, _KERNEL), (1, 1), (1, 1))


def _at_once_on_cpu(layer: _Layer, x: _Image) -> _Smaller:
    """A convolution, tanh and pooling, with a gradient that is faster on a CPU."""
    return _mean_pool(jnp.tanh(_apply(layer, _patches_on_cpu(x), product)))


def _line_by_line(layer: _Layer, x: _Image) -> _Smaller:
    """The same, one line of the pooled image at a time, so that its patches fit a CPU's cache.

    The lines of the image come first, and each point is stored with the four to its right, so that the
    patches of a line are five consecutive lines.
    """
    kernels, bias = layer
    channels, height, width, batch = x.shape
    height, width = height - _KERNEL + 1, width - _KERNEL + 1
    lines = jnp.moveaxis(x, 0, 1)
    lines = jnp.stack([lines[:, :, right : right + width] for right in range(_KERNEL)], axis=1)
    lines = lines.reshape(-1, _KERNEL * channels, width * batch)
    kernels = kernels.reshape(-1, channels, _KERNEL, _KERNEL).transpose(0, 2, 3, 1)
    kernels = kernels.reshape(len(bias), -1)

    def convolved(line: Array) -> Float[Array, "output point"]:
        patches = jax.lax.dynamic_slice_in_dim(lines, line, _KERNEL)
        return jnp.tanh(kernels @ patches.reshape(-1, width * batch) + bias)

    def pooled(line: Array) -> Float[Array, "output half_width batch"]:
        two = convolved(2 * line) + convolved(2 * line + 1)
        two = two.reshape(len(bias), -1, 2, batch)
        return (two[:, :, 0] + two[:, :, 1]) / 4

    return jnp.moveaxis(jax.lax.map(pooled, jnp.arange(height // 2)), 0, 1)


def _at_least_two(x: Float[Array, "feature batch"]) -> Float[Array, "feature batch2"]:
    """A batch of one, padded with an empty sample.

    The gradient of a dense layer is a sum over the batch. With one term it would be compiled as a loop
    over entries that recomputes its inputs; with two, as a matrix product.
    """
    return jnp.pad(x, ((0, 0), (0, 1))) if x.shape[1] == 1 else x


def _mean_pool(x: _Image) -> _Smaller:
    """The mean of every 2×2 square, as four strided slices."""
    rows = x[:, 0::2] + x[:, 1::2]
    return (rows[:, :, 0::2] + rows[:, :, 1::2]) / 4
