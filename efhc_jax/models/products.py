"""Matrix products and patches whose gradients a CPU computes fast.

The gradient of a product contains products with transposed matrices. Their speed depends on which of
the two is transposed, by a factor of two and more, and XLA would choose otherwise, hence the barriers.
Values and gradients are those of the plain forms up to rounding.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax.lax import dot_general, optimization_barrier
from jaxtyping import Array, Float

_Saved = tuple[Array, tuple[Array, Array]]  # a result, and what its gradient needs


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def product(
    weights: Float[Array, "output input"],
    columns: Float[Array, "input column"],
    precision: jax.lax.PrecisionLike = None,
) -> Float[Array, "output column"]:
    """The matrix product weights @ columns, of kernels or weights with patches or inputs.

    Example:
        >>> product(jnp.array([[1.0, 2.0]]), jnp.array([[3.0], [4.0]])).tolist()
        [[11.0]]
    """
    return jnp.matmul(weights, columns, precision=precision)


def _product_forward(weights: Array, columns: Array, precision: jax.lax.PrecisionLike) -> _Saved:
    return product(weights, columns, precision), (weights, columns)


def _product_backward(
    precision: jax.lax.PrecisionLike, saved: tuple[Array, Array], slope: Float[Array, "output column"]
) -> tuple[Array, Array]:
    """The gradients: slope @ columnsᵀ and weightsᵀ @ slope."""
    weights, columns = saved
    along_columns = functools.partial(
        dot_general, dimension_numbers=(((1,), (1,)), ((), ())), precision=precision
    )
    if columns.shape[1] > columns.shape[0]:  # a long sum: the smaller matrix is the one transposed
        to_weights = optimization_barrier(along_columns(columns, slope)).T
    else:
        to_weights = along_columns(slope, columns)
    transposed = optimization_barrier(weights.T)
    return to_weights, jnp.matmul(transposed, slope, precision=precision)


product.defvjp(_product_forward, _product_backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def scores(
    weights: Float[Array, "output input"],
    samples: Float[Array, "sample input"],
    precision: jax.lax.PrecisionLike = None,
) -> Float[Array, "sample output"]:
    """The matrix product samples @ weightsᵀ.

    Example:
        >>> scores(jnp.array([[1.0, 2.0]]), jnp.array([[3.0, 4.0]])).tolist()
        [[11.0]]
    """
    return dot_general(samples, weights, (((1,), (1,)), ((), ())), precision=precision)


def _scores_forward(weights: Array, samples: Array, precision: jax.lax.PrecisionLike) -> _Saved:
    return scores(weights, samples, precision), (weights, samples)


def _scores_backward(
    precision: jax.lax.PrecisionLike, saved: tuple[Array, Array], slope: Float[Array, "sample output"]
) -> tuple[Array, Array]:
    """The gradients: slopeᵀ @ samples and slope @ weights."""
    weights, samples = saved
    to_weights = dot_general(slope, samples, (((0,), (0,)), ((), ())), precision=precision)
    return optimization_barrier(to_weights), jnp.matmul(slope, weights, precision=precision)


scores.defvjp(_scores_forward, _scores_backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def of_one_sample(
    sample: Float[Array, "1 input"],
    weights: Float[Array, "input output"],
    precision: jax.lax.PrecisionLike = None,
) -> Float[Array, "1 output"]:
    """The matrix product sample @ weights, with a gradient that is one as well.

    The gradient of the weights is a sum over one sample. XLA would compile it as a loop over its entries
    that computes the inputs again for each, so an empty sample is added.

    Example:
        >>> of_one_sample(jnp.array([[3.0, 4.0]]), jnp.array([[1.0], [2.0]])).tolist()
        [[11.0]]
    """
    return jnp.matmul(sample, weights, precision=precision)


def _of_one_forward(sample: Array, weights: Array, precision: jax.lax.PrecisionLike) -> _Saved:
    return of_one_sample(sample, weights, precision), (sample, weights)


def _of_one_backward(
    precision: jax.lax.PrecisionLike, saved: tuple[Array, Array], slope: Float[Array, "1 output"]
) -> tuple[Array, Array]:
    sample, weights = saved
    two, slopes = (jnp.pad(each, ((0, 1), (0, 0))) for each in (sample, slope))
    to_sample = dot_general(slope, weights, (((1,), (1,)), ((), ())), precision=precision)
    return to_sample, dot_general(two, slopes, (((0,), (0,)), ((), ())), precision=precision)


of_one_sample.defvjp(_of_one_forward, _of_one_backward)


def patches(
    x: Float[Array, "channel *space batch"],
    window: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
) -> Float[Array, "patch *smaller batch"]:
    """All patches of a convolution without padding, as entries (channel, *window) of the first axis.

    The axes of the window are added one by one, so that the gradient is a short sum for each.

    Example:
        >>> patches(jnp.arange(4.0).reshape(1, 4, 1), [2], [1], [1])[..., 0].tolist()
        [[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]]
    """
    for i in reversed(range(len(window))):
        axis = x.ndim - 1 - len(window) + i
        x = optimization_barrier(x)
        x = _along(x, axis, window[i], strides[i], dilation[i])
    return x.reshape(-1, *x.shape[1 + len(window) :])


def _along(x: Array, axis: int, size: int, stride: int, step: int) -> Array:
    """The points of a window that moves along an axis, as a new second axis."""
    count = (x.shape[axis] - (size - 1) * step - 1) // stride + 1
    if size == stride and step == 1:  # windows side by side
        x = jax.lax.slice_in_dim(x, 0, count * size, axis=axis)
        return jnp.moveaxis(x.reshape(*x.shape[:axis], count, size, *x.shape[axis + 1 :]), axis + 1, 1)
    span = (count - 1) * stride + 1
    points = [jax.lax.slice_in_dim(x, at, at + span, stride, axis) for at in range(0, size * step, step)]
    return jnp.stack(points, axis=1)
