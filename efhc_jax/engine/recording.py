"""The values of an iteration that a run records."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from efhc_jax.engine.step import Info, Inputs, State
from efhc_jax.network.slots import as_matrix


class Iteration(NamedTuple):
    """Everything about one iteration, from which a recorder selects."""

    sample: Array  # (device, batch), indices into the training set; (step, device, batch) if several
    inputs: Inputs
    info: Info
    after: State


Recorder = Callable[[Iteration], dict[str, Array]]


def record_summary(iteration: Iteration) -> dict[str, Array]:
    """Values of every iteration that a run always records."""
    return {
        "transmission_time": iteration.info.transmission_time,
        "messages": iteration.info.messages,
        "bits": iteration.info.bits,
        "train_loss": iteration.info.train_loss,
        "new_link_time": iteration.info.new_link_time,
        "links_used": _number_of_links(iteration.info.used_links),
        "new_links_used": _number_of_links(iteration.info.new_links),
        "finite": jnp.isfinite(iteration.info.deviation),
    }


def record_audit(iteration: Iteration) -> dict[str, Array]:
    """Values of every iteration that an audit needs."""
    return record_summary(iteration) | {
        "adjacency": as_matrix(iteration.inputs.network.links, iteration.inputs.network.neighbors),
        "used_links": as_matrix(iteration.info.used_links, iteration.inputs.network.neighbors),
        "fired": iteration.info.fired,
        "gradient_norm": iteration.info.gradient_norm,
        "largest_gradient": iteration.info.largest_gradient,
    }


def record_trace(iteration: Iteration) -> dict[str, Array]:
    """The full state of every iteration, for checking small runs by hand."""
    return record_audit(iteration) | {
        "weights": _as_vectors(iteration.after.weights),
        "last_broadcast": _as_vectors(iteration.after.last_broadcast),
        "sample": _of_all_steps(iteration.sample),
    }


def _number_of_links(links: Bool[Array, "device slot"]) -> Int[Array, ""]:
    """Each is in a slot of both ends.

    The bound holds in any case. Without it compilers merge both sums into one that takes a kernel of its
    own; those of each device are computed for the transmission time anyway.
    """
    return jnp.minimum(links.sum(1, dtype=jnp.int32), links.shape[1]).sum() // 2


def _as_vectors(weights: Float[Array, "device *parameters"]) -> Float[Array, "device parameter"]:
    return weights.reshape(len(weights), -1)


def _of_all_steps(sample: Int[Array, "*steps device batch"]) -> Int[Array, "device samples"]:
    """The samples of each device in all local steps, one after the other."""
    if sample.ndim == 2:
        return sample
    return jnp.moveaxis(sample, 0, 1).reshape(sample.shape[1], -1)
