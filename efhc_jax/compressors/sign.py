"""Signs, and one number for the size of all entries."""

from __future__ import annotations

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from efhc_jax.compressors.base import Compressor


def compress(
    vectors: Float[Array, "device *parameters"], settings: object, words: object
) -> tuple[Float[Array, "device *parameters"], Float[Array, "device"]]:
    """C(x) = (‖x‖₁/n)·sign(x), with sign(0) = 0, in n + 32 bits.

    Example:
        >>> sent, bits = compress(jnp.array([[3.0, -1.0, 0.0, 4.0]]), None, None)
        >>> sent.tolist(), bits.tolist()
        ([[2.0, -2.0, 0.0, 2.0]], [36.0])
    """
    devices, *shape = vectors.shape
    axes = tuple(range(1, vectors.ndim))
    size = jnp.mean(jnp.abs(vectors), axis=axes, keepdims=True)
    return size * jnp.sign(vectors), jnp.full(devices, math.prod(shape) + 32.0, vectors.dtype)


def numbers(parameters: int, settings: object) -> float:
    """(n + 32) / 32."""
    return (parameters + 32) / 32


def contraction(parameters: int, settings: object) -> float:
    """ω = 1/n, which vectors with one large entry and no zeros approach."""
    return 1 / parameters


COMPRESSOR = Compressor(compress, numbers, (), contraction)
