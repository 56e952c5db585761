"""QSGD: absolute values rounded at random to s levels between 0 and the norm (arXiv 1610.02132).

It is divided by 1 + β, as CHOCO-SGD needs it (arXiv 1902.00340): the unscaled one can be further from x
than 0 is.
"""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Integer

from efhc_jax.compressors.base import Compressor, Words
from efhc_jax.randomness.draws import uniform


def compress(
    vectors: Float[Array, "device *parameters"], settings: Any, words: Words
) -> tuple[Float[Array, "device *parameters"], Float[Array, "device"]]:
    """C(x) = ‖x‖₂·sign(x)·ξ / (s(1 + β)), ξ = ⌊s|x|/‖x‖₂ + u⌋, β = min(n/s², √n/s).

    u is uniform on [0, 1) for each entry of each device, and C(0) = 0. A message is the norm in 32 bits
    and one of 2s + 1 values per entry: n⌈log₂(2s + 1)⌉ + 32 bits.
    """
    devices, *shape = vectors.shape
    parameters = math.prod(shape)
    axes = tuple(range(1, vectors.ndim))
    levels = jnp.asarray(settings.levels, vectors.dtype)
    # Squares of small numbers vanish in 32 bits, so they are taken relative to the largest entry.
    largest = jnp.max(jnp.abs(vectors), axis=axes, keepdims=True)
    relative = jnp.abs(vectors) / jnp.where(largest == 0, 1, largest)
    norm = jnp.sqrt(jnp.sum(relative**2, axis=axes, keepdims=True))
    exact = levels * (relative / jnp.where(norm == 0, 1, norm))
    below = jnp.floor(exact)
    coin = uniform(words(jnp.arange(vectors.size))).astype(vectors.dtype).reshape(vectors.shape)
    # ⌊exact + u⌋, without the digits of u that a sum with a large number of levels would lose.
    rounded = below + (exact - below + coin >= 1)
    spread = math.sqrt(parameters) / levels
    beta = jnp.minimum(spread, spread**2)
    sent = largest * norm / (levels * (1 + beta)) * jnp.sign(vectors) * rounded
    bits = parameters * _bits_per_entry(settings.levels).astype(vectors.dtype) + 32
    return sent, jnp.broadcast_to(bits, devices)


def numbers(parameters: int, settings: Any) -> float:
    """(n⌈log₂(2s + 1)⌉ + 32) / 32."""
    return (parameters * int(2 * settings.levels).bit_length() + 32) / 32


def contraction(parameters: int, settings: Any) -> float:
    """ω = 1/(1 + β): without the factor, the mean is x and E‖C(x)‖² ≤ (1 + β)‖x‖²."""
    spread = math.sqrt(parameters) / settings.levels
    return 1 / (1 + min(spread, spread**2))


def _bits_per_entry(levels: Integer[Array, ""] | int) -> Integer[Array, ""]:
    """⌈log₂(2s + 1)⌉, the length of 2s in binary; a logarithm would be rounded."""
    return 32 - lax.clz(2 * jnp.asarray(levels, jnp.uint32)).astype(jnp.int32)


COMPRESSOR = Compressor(compress, numbers, ("levels",), contraction)
