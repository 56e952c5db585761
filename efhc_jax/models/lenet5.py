"""LeNet5: three convolutions and two dense layers with tanh and cross-entropy loss. Not convex.

Convolutions whose kernels differ between devices would be compiled as grouped convolutions, which are
several times slower than products of kernels with patches of the image. In training, a patch holds all
that a square of outputs needs, and the kernels are shifted to each of these outputs: a third of the
patches of single outputs, or less, and products that are large enough for an accelerator. In evaluation,
where operations count, there is a patch for each output, and GPUs keep patches on the chip. Arrays are
(channel, height, width, batch), so that a slice moves contiguous memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from efhc_jax.errors import ExperimentError
from efhc_jax.models import products, triton
from efhc_jax.models.base import PIXEL_MEAN, PIXEL_STD, Model
from efhc_jax.models.cross_entropy import cross_entropy
from efhc_jax.models.products import product
from efhc_jax.models.properties import Properties

_KERNEL = 5
_FOUR = ((0, 0), (0, 1), (1, 0), (1, 1))  # outputs that are pooled
_FEW = 1000  # weights of a dense layer that is a sum in any case
_BACKGROUND = -PIXEL_MEAN / PIXEL_STD  # a black pixel after normalisation

# The gradients of a layer grow with the weights of the next, without bound.
PROPERTIES = Properties(convex=False, in_words="is a neural network", lowest_loss=0.0)

_Layer = tuple[Float[Array, "output input"], Float[Array, "output 1"]]  # kernels or weights, and bias
_Product = Callable[[Array, Array], Array]
_Image = Float[Array, "channel height width batch"]
_Squares = Float[Array, "square_channel square_row square_column batch"]
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

    def on_cpu(
        row: Float[Array, "parameter"], images: Float[Array, "batch 28 28"]
    ) -> Float[Array, "batch class"]:
        first, second, *dense = layers_of(row)
        x = _mean_pool(jnp.tanh(_apply(first, _patches_on_cpu(_frame(images)), product)))
        x = _mean_pool(jnp.tanh(_apply(second, _patches_on_cpu(x), product)))
        return _dense_on_cpu(dense, x).T

    def logits(
        row: Float[Array, "parameter"], images: Float[Array, "batch 28 28"]
    ) -> Float[Array, "batch class"]:
        first, second, *dense = layers_of(row)
        x = _tiled(first, _space_to_depth(_frame(images), 4), 4)
        return _dense_layers(dense, _tiled(second, x, 2), _tanh).T

    def logits_of_all(
        rows: Float[Array, "row parameter"], images: Float[Array, "batch 28 28"]
    ) -> Float[Array, "row batch class"]:
        """On a CPU one model at a time, so that activations stay in the cache; on GPUs in kernels."""

        def at_once(rows: Array, frame: Array) -> Array:
            patches = _patches_of_pairs(frame)

            def scores(row: Array) -> Array:
                first, second, *dense = layers_of(row)
                x = _space_to_depth(_from_pairs(first, patches), 2)
                return _dense_layers(dense, _tiled(second, x, 2)).T

            return jax.vmap(scores)(rows)

        def in_turn(rows: Array, frame: Array) -> Array:
            patches = _patches(frame)

            def scores(row: Array) -> Array:
                first, second, *dense = layers_of(row)
                x = _mean_pool(jnp.tanh(_apply(first, patches)))
                return _dense_layers(dense, _line_by_line(second, x)).T

            return jax.lax.map(scores, rows)

        def in_kernels(rows: Array, frame: Array) -> Array:
            images = frame.shape[-1]
            frame = jnp.pad(frame, [(0, 0)] * 3 + [(0, -images % triton.IMAGES)])

            def scores(row: Array) -> Array:
                first, second, *dense = layers_of(row)
                x = triton.pooled_convolution(*first, frame)
                return _dense_layers(dense, triton.pooled_convolution(*second, x)).T

            return jax.vmap(scores)(rows)[:, :images]

        kernels = {"cuda": in_kernels} if triton.is_supported() else {}
        return jax.lax.platform_dependent(rows, _frame(images), cpu=in_turn, default=at_once, **kernels)

    size = int(ends[-1])
    return Model(
        size,
        init,
        logits,
        cross_entropy,
        logits_of_all,
        images_at_once=96,
        properties=PROPERTIES,
        logits_on_cpu=on_cpu,
        images_on_accelerators=384,
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


def _patches_on_cpu(x: _Image) -> Float[Array, "patch height-4 width-4 batch"]:
    """The same patches, with a gradient that is faster on a CPU."""
    return products.patches(x, (_KERNEL, _KERNEL), (1, 1), (1, 1))


def _dense_on_cpu(layers: list[tuple[Array, Array]], x: _Image) -> Float[Array, "score batch"]:
    """Dense layers of an image, with products whose gradients are faster on a CPU.

    A batch of one is padded with an empty sample. The gradient of a dense layer is a sum over the batch.
    With one term it would be compiled as a loop over entries that recomputes its inputs.
    """
    batch = x.shape[-1]
    x = x.reshape(-1, batch)
    x = jnp.pad(x, ((0, 0), (0, 1))) if batch == 1 else x
    *hidden, (last, last_bias) = layers
    for weights, bias in hidden:
        x = jnp.tanh(product(weights, x) + bias)
    return (product(last, x) + last_bias)[:, :batch]


def _line_by_line(layer: _Layer, x: _Image) -> _Smaller:
    """A convolution, tanh and pooling, a line at a time, so that its patches fit a CPU's cache.

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


def _patches_of_pairs(
    frame: Float[Array, "1 32 32 batch"],
) -> Float[Array, "1 25 4 14 14 batch"]:
    """The patches of a 5×5 convolution, with the four outputs that are pooled along an axis."""
    points = range(_KERNEL)
    patches = [
        jnp.stack(
            [frame[0, down + y : down + y + 28 : 2, right + x : right + x + 28 : 2] for y, x in _FOUR]
        )
        for down in points
        for right in points
    ]
    return jnp.stack(patches)[None]


def _from_pairs(
    layer: _Layer, patches: Float[Array, "1 25 4 height width batch"]
) -> Float[Array, "output height width batch"]:
    """A convolution of the frame, tanh and pooling, as sums, which compilers fuse into one kernel."""
    kernels, bias = layer
    kernels, bias = (each.reshape(*each.shape, 1, 1, 1, 1) for each in (kernels, bias))
    return jnp.tanh(jnp.sum(kernels * patches, axis=1) + bias[:, 0]).sum(1) / 4


def _dense_layers(
    layers: list[tuple[Array, Array]], x: _Image, activation: Callable[[Array], Array] = jnp.tanh
) -> Float[Array, "score batch"]:
    """Dense layers of an image, with an activation between them."""
    x = x.reshape(-1, x.shape[-1])
    for layer in layers[:-1]:
        x = activation(_dense(layer, x))
    return _dense(layers[-1], x)


def _dense(layer: _Layer, x: Float[Array, "input batch"]) -> Float[Array, "output batch"]:
    """A dense layer.

    A small product is written as a sum, which compilers fuse with the operations around it. Its gradient
    for one sample is then an outer product, which the update computes as it goes.
    """
    weights, bias = layer
    if x.shape[1] == 1 or weights.size <= _FEW:
        return jnp.sum(weights[:, :, None] * x, axis=1) + bias
    return weights @ x + bias


def _space_to_depth(x: _Image, tile: int) -> _Squares:
    """Squares of pixels as channels (channel, row in the square, column in it)."""
    channels, height, width, batch = x.shape
    squares = x.reshape(channels, height // tile, tile, width // tile, tile, batch)
    squares = jnp.moveaxis(squares, (2, 4), (1, 2))
    return squares.reshape(-1, height // tile, width // tile, batch)


def _tiled(
    layer: _Layer, x: _Squares, tile: int
) -> Float[Array, "pooled_channel pooled_row pooled_column batch"]:
    """A convolution, tanh and pooling of an image in squares (`_space_to_depth`), a square at a time.

    A 5×5 convolution of pixels is one of s×s squares, with s = (tile + 4) / tile: each square of outputs
    depends on s×s squares of the image. A further input of 1 has the bias as its weight.

    Returns:
        The pooled image, in squares of half the size.
    """
    kernels, bias = layer
    span = (tile + _KERNEL - 1) // tile
    inputs, height, width, batch = x.shape
    height, width = height - span + 1, width - span + 1
    near = [
        x[:, down : down + height, right : right + width]
        for down in range(span)
        for right in range(span)
    ]
    patches = jnp.concatenate([*near, jnp.ones((1, height, width, batch), x.dtype)])
    biases = jnp.stack([bias] * tile**2, axis=1).reshape(-1, 1)
    kernels = jnp.concatenate([_shifted_kernels(kernels, tile), biases], axis=1)
    z = _product(kernels, patches.reshape(kernels.shape[1], -1))
    pairs = _tanh(z).reshape(len(bias), tile // 2, 2, tile // 2, 2, height, width, batch)
    return pairs.sum((2, 4)).reshape(-1, height, width, batch) / 4


def _shifted_kernels(
    kernels: Float[Array, "output input"], tile: int
) -> Float[Array, "output_in_tile input_in_squares"]:
    """Kernels for each output of a square, on the squares of the image that it depends on."""
    outputs = len(kernels)
    kernels = kernels.reshape(outputs, -1, _KERNEL, _KERNEL)
    channels, span = kernels.shape[1], (tile + _KERNEL - 1) // tile
    shifted = [
        jnp.pad(kernels, ((0, 0), (0, 0), (down, tile - 1 - down), (right, tile - 1 - right)))
        for down in range(tile)
        for right in range(tile)
    ]
    squares = jnp.stack(shifted, axis=1).reshape(outputs, tile**2, channels, span, tile, span, tile)
    return squares.transpose(0, 1, 3, 5, 2, 4, 6).reshape(outputs * tile**2, -1)


@jax.custom_vjp
def _product(
    kernels: Float[Array, "output input"], patches: Float[Array, "input point"]
) -> Float[Array, "output point"]:
    """Kernels times patches. Their gradient comes first, after which the patches are not needed."""
    return kernels @ patches


def _product_forward(kernels: Array, patches: Array) -> tuple[Array, tuple[Array, Array]]:
    return kernels @ patches, (kernels, patches)


def _product_backward(kept: tuple[Array, Array], slope: Array) -> tuple[Array, Array]:
    kernels, patches = kept
    of_kernels, slope = jax.lax.optimization_barrier((slope @ patches.T, slope))
    return of_kernels, kernels.T @ slope


_product.defvjp(_product_forward, _product_backward)


@jax.custom_jvp
def _tanh(z: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Tanh with the derivative 1/cosh², from its argument: its values need not be kept."""
    return jnp.tanh(z)


@_tanh.defjvp
def _tanh_slope(at: tuple[Array], slopes: tuple[Array]) -> tuple[Array, Array]:
    return jnp.tanh(at[0]), slopes[0] / jnp.cosh(at[0]) ** 2


def _mean_pool(x: _Image) -> _Smaller:
    """The mean of every 2×2 square, as four strided slices."""
    rows = x[:, 0::2] + x[:, 1::2]
    return (rows[:, :, 0::2] + rows[:, :, 1::2]) / 4
