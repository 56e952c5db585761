"""The global loss: F(w) = (1/m) Σ_i F_i(w), with F_i the mean loss over device i's training samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt8

from efhc_jax.data.splits import Shards
from efhc_jax.models.base import Model, normalise


class Objective(NamedTuple):
    """The samples and weights of F: Σ_s share_s·ℓ_s, in chunks of samples."""

    images: UInt8[Array, "sample height width"]
    labels: Int[Array, "sample"]
    chosen: Int[Array, "chunk position"]  # samples, each once
    share: Float[Array, "chunk position"]  # 1/(m·|D_i|) for a sample of device i, 0 if no device has it


def make_objective(
    images: UInt8[Array, "sample height width"],
    labels: Int[Array, "sample"],
    shards: Shards,
    at_once: int,
) -> Objective:
    """The objective of a split, in chunks of `at_once` samples."""
    pool, start, count = (jnp.asarray(array) for array in shards)
    position = jnp.arange(len(pool))
    owner = jnp.searchsorted(start, position, side="right") - 1
    owned = position < start[owner] + count[owner]
    sizes = (len(start) * count[owner]).astype(jnp.result_type(float))
    share = jnp.where(owned, 1 / sizes, 0)
    chunks = -(-len(pool) // at_once)
    missing = chunks * at_once - len(pool)  # padded with samples of weight 0
    return Objective(
        images,
        labels,
        jnp.pad(pool, (0, missing)).reshape(chunks, at_once),
        jnp.pad(share, (0, missing)).reshape(chunks, at_once),
    )


def global_loss(
    model: Model, row: Float[Array, "*parameters"], objective: Objective
) -> Float[Array, ""]:
    """F at one model."""
    return _total(lambda chunk: _part(model, row, *chunk), objective)


def global_loss_and_gradient(
    model: Model, row: Float[Array, "*parameters"], objective: Objective
) -> tuple[Float[Array, ""], Float[Array, "*parameters"]]:
    """F and ∇F at one model."""
    part = jax.value_and_grad(lambda row, chunk: _part(model, row, *chunk))
    return _total(lambda chunk: part(row, chunk), objective)


def _part(model: Model, row: Array, images: Array, labels: Array, share: Array) -> Float[Array, ""]:
    return jnp.sum(share * model.loss(model.logits(row, normalise(images)), labels))


def _total(part: Callable[[tuple[Array, Array, Array]], Any], objective: Objective) -> Any:
    """The sum of a function of (images, labels, shares) over all chunks."""

    def of_chunk(entry: tuple[Array, Array]) -> Any:
        chosen, share = entry
        return part((objective.images[chosen], objective.labels[chosen], share))

    each = jax.lax.map(of_chunk, (objective.chosen, objective.share))
    return jax.tree.map(lambda parts: jnp.sum(parts, axis=0), each)
