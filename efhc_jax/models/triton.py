"""A 5×5 convolution, tanh and mean pooling as one kernel for NVIDIA GPUs, in Triton.

As a product with patches, a convolution first writes every pixel as often as kernels cover it, which
takes longer than the arithmetic. Here a program of the grid computes one point of the pooled image for a
block of images: it reads the pixels around the point, and keeps the sums of all outputs in registers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

IMAGES = 128  # of a block; the batch is a multiple of it
_WARPS = 2  # of a block: the sums of 16 outputs then fit the registers of a thread
_KERNEL = 5
_TOO_OLD = ("5.", "6.", "7.")  # compute capabilities that Triton does not compile for


def is_supported() -> bool:
    """Whether Triton compiles for every GPU of this machine, which may have none."""
    gpus = [device for device in jax.local_devices() if device.platform == "gpu"]
    return not any(str(gpu.compute_capability).startswith(_TOO_OLD) for gpu in gpus)


def pooled_convolution(
    kernels: Float[Array, "output input"],
    bias: Float[Array, "output 1"],
    x: Float[Array, "channel height width batch"],
    *,
    interpret: bool = False,
) -> Float[Array, "output half_height half_width batch"]:
    """Means over 2×2 squares of tanh(kernels ∗ x + bias), without padding.

    Args:
        kernels: for each output, 5×5 weights per channel.
        bias: of each output.
        x: images, a multiple of `IMAGES`.
        interpret: whether to compute it in JAX, slowly and on any platform, without a kernel.
    """
    from jax.experimental import pallas
    from jax.experimental.pallas import triton

    channels, height, width, batch = x.shape
    outputs, inputs = kernels.shape
    rows, columns = (height - _KERNEL + 1) // 2, (width - _KERNEL + 1) // 2
    return pallas.pallas_call(
        functools.partial(_point, _in_two_steps if interpret else _fused),
        jax.ShapeDtypeStruct((outputs, rows, columns, batch), x.dtype),
        grid=(rows, columns, batch // IMAGES),
        in_specs=[
            pallas.BlockSpec((outputs, inputs), lambda row, column, block: (0, 0)),
            pallas.BlockSpec((outputs,), lambda row, column, block: (0,)),
            pallas.BlockSpec(
                (channels, height, width, IMAGES), lambda row, column, block: (0, 0, 0, block)
            ),
        ],
        out_specs=pallas.BlockSpec(
            (outputs, None, None, IMAGES), lambda row, column, block: (0, row, column, block)
        ),
        compiler_params=triton.CompilerParams(num_warps=_WARPS),
        interpret=interpret,
        name="pooled_convolution",
    )(kernels, bias[:, 0], x)


def _point(multiply_add: Callable[..., Array], kernels: Any, bias: Any, x: Any, pooled: Any) -> None:
    """One point of the pooled image, from references to arrays: four points of the convolution."""
    from jax.experimental import pallas

    outputs, inputs = kernels.shape
    place = jnp.arange(4)
    top = 2 * pallas.program_id(0) + (place >> 1)
    left = 2 * pallas.program_id(1) + (place & 1)

    def add(entry: Array, sums: list[Array]) -> list[Array]:
        line, right = jax.lax.div(entry, _KERNEL), jax.lax.rem(entry, _KERNEL)
        channel, down = jax.lax.div(line, _KERNEL), jax.lax.rem(line, _KERNEL)
        pixels = x[channel, top + down, left + right, :]
        return [multiply_add(kernels[output, entry], pixels, each) for output, each in enumerate(sums)]

    nothing = jnp.zeros((4, x.shape[-1]), x.dtype)
    sums = jax.lax.fori_loop(0, inputs, add, [nothing] * outputs)
    for output, each in enumerate(sums):
        pooled[output, :] = jnp.tanh(each + bias[output]).sum(0) / 4


def _in_two_steps(
    weight: Float[Array, ""], pixels: Float[Array, "place image"], total: Float[Array, "place image"]
) -> Float[Array, "place image"]:
    return total + weight * pixels


def _fused(
    weight: Float[Array, ""], pixels: Float[Array, "place image"], total: Float[Array, "place image"]
) -> Float[Array, "place image"]:
    """The same in one instruction of the GPU; from a product and a sum, XLA would make two."""
    from jax.experimental.pallas import triton

    kind, register = ("f64", "d") if total.dtype == jnp.float64 else ("f32", "f")
    return triton.elementwise_inline_asm(
        f"fma.rn.{kind} $0, $1, $2, $3;",
        args=[jnp.full_like(pixels, weight), pixels, total],
        constraints=f"={register},{register},{register},{register}",
        pack=1,
        result_shape_dtypes=[jax.ShapeDtypeStruct(total.shape, total.dtype)],
    )[0]
