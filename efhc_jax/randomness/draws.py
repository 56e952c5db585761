"""Random draws of every iteration: mini-batches and the policies' coins.

A draw depends only on the key of the run and on the iteration, so that a run does not depend on how it
is divided into chunks, where it resumes, or which batch it is part of.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import threefry_2x32
from jaxtyping import Array, Float, Int, Integer, Key, UInt32

from efhc_jax.data.splits import Shards
from efhc_jax.randomness.streams import Stream


@contextlib.contextmanager
def pinned_settings() -> Iterator[None]:
    """JAX as it is by default, in what a seed means and in what the package was written for.

    Environment variables such as `JAX_THREEFRY_PARTITIONABLE` would change the random numbers of a run,
    or stop it. It has to surround the calls of compiled functions: they are lowered then. What decides
    how exactly numbers are computed, such as `jax_enable_x64`, stays as the user wants it.
    """
    with (
        jax.threefry_partitionable(True),
        jax.numpy_dtype_promotion("standard"),
        jax.numpy_rank_promotion("allow"),
    ):
        yield


def run_key(seed: int) -> Key[Array, ""]:
    """The key of a run: `jax.random.key(seed)`, whatever `jax_random_seed_offset` is."""
    words = jnp.asarray(np.array([0, seed], np.uint32))
    return jax.random.wrap_key_data(words, impl="threefry2x32")


def stream_key(key: Key[Array, ""], stream: Stream) -> Key[Array, ""]:
    """The key of one stream of a run."""
    return jax.random.fold_in(key, int(stream))


def random_words(
    key: Key[Array, ""],
    stream: Stream,
    iteration: Int[Array, ""] | int,
    positions: Integer[Array, "count"],
) -> UInt32[Array, "count"]:
    """Random 32-bit words, each a hash of the stream's key, the iteration and its position.

    It is the generator of `jax.random` without the derivation of a key per iteration, which took most of
    the compilation time.
    """
    count = positions.shape[0]
    iterations = jnp.full(count, iteration).astype(jnp.uint32)
    counters = jnp.concatenate([iterations, positions.astype(jnp.uint32)])
    return threefry_2x32(jax.random.key_data(stream_key(key, stream)), counters)[:count]


def uniform(words: UInt32[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Random words as numbers on [0, 1), the same in 32 and in 64 bits."""
    return (words >> 8).astype(jnp.result_type(float)) * 2.0**-24


def draw_samples(
    key: Key[Array, ""], iteration: Int[Array, ""] | int, shards: Shards, batch_size: int
) -> Int[Array, "device batch"]:
    """Each device's mini-batch: a uniform subset of its own samples, as indices into the dataset.

    Floyd's algorithm: the t-th draw is uniform over the first count − B + t + 1 samples, and is replaced
    by the last of these if it repeats an earlier draw.
    """
    last = shards.count[:, None] - batch_size + jnp.arange(batch_size, dtype=jnp.int32)
    words = random_words(key, Stream.BATCHES, iteration, jnp.arange(last.size)).reshape(last.shape)
    drawn = (words % (last + 1).astype(jnp.uint32)).astype(jnp.int32)

    def place(t: Int[Array, ""], chosen: Int[Array, "device batch"]) -> Int[Array, "device batch"]:
        repeated = jnp.any(chosen == drawn[:, t, None], axis=1)
        return chosen.at[:, t].set(jnp.where(repeated, last[:, t], drawn[:, t]))

    chosen = drawn
    if batch_size > 1:
        chosen = jax.lax.fori_loop(0, batch_size, place, jnp.full_like(drawn, -1))
    return jnp.asarray(shards.pool)[shards.start[:, None] + chosen]


def draw_coins(
    key: Key[Array, ""], iteration: Int[Array, ""] | int, devices: int
) -> Float[Array, "device"]:
    """One uniform number on [0, 1) per device."""
    return uniform(random_words(key, Stream.POLICY, iteration, jnp.arange(devices)))


def draw_models(
    key: Key[Array, ""], init: Callable[[Key[Array, ""]], Array], devices: int
) -> Float[Array, "device *parameters"]:
    """W(0): a random model for every device."""
    keys = jax.random.split(stream_key(key, Stream.MODELS), devices)
    return jax.vmap(init)(keys)
