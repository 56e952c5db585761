"""From what a person wrote to the arrays of one run.

`Experiment` decides shapes and values; `Hyper` holds the values alone, as arrays that the compiled
program takes as arguments. Runs that differ only in these share one compilation and one batch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from efhc_jax.config import Experiment
from efhc_jax.data import Dataset
from efhc_jax.data.splits import Shards, split_data
from efhc_jax.graphs import GRAPHS, NetworkSettings
from efhc_jax.network import Network, make_network, pad_networks
from efhc_jax.policies import POLICIES
from efhc_jax.resources import bandwidths
from efhc_jax.streams import Stream, host_stream


class Hyper(NamedTuple):
    """The values of one run; a batch of runs has them stacked along a new first axis."""

    key: Key[Array, ""]
    policy: Int[Array, ""]  # position in POLICIES
    r: Float[Array, ""]
    learning_rate: tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]  # a, b, c
    budgets: tuple[Float[Array, "budget"], Float[Array, "budget"]]  # and what rounding took from them
    bandwidth: Float[Array, "device"]  # b_i
    adjacency: Bool[Array, "device slot"]  # A(0)
    neighbors: Int[Array, "device slot"] | None  # the devices behind the slots; None for a matrix
    shards: Shards  # which samples each device owns


def prepare(experiment: Experiment, dataset: Dataset) -> Hyper:
    """Draw the network, the bandwidths and the split of one experiment."""
    e = experiment
    settings = NetworkSettings(e.devices, e.connectivity, e.placement or e.connectivity)
    links = GRAPHS[e.graph](settings, host_stream(e.seed, Stream.GRAPH))
    network = make_network(links, e.devices)
    shards = split_data(
        e.split,
        dataset.train_labels,
        devices=e.devices,
        labels_per_device=e.labels_per_device,
        dirichlet_alpha=e.dirichlet_alpha,
        minimum=e.batch_size,
        rng=host_stream(e.seed, Stream.SPLIT),
    )
    real = jnp.result_type(float)
    return Hyper(
        key=jax.random.key(e.seed, impl="threefry2x32"),
        policy=jnp.asarray(list(POLICIES).index(e.policy), jnp.int32),
        r=jnp.asarray(e.r, real),
        learning_rate=(
            jnp.asarray(e.learning_rate, real),
            jnp.asarray(e.learning_rate_offset, real),
            jnp.asarray(e.learning_rate_decay, real),
        ),
        budgets=_in_two(np.asarray(e.budgets), real),
        bandwidth=jnp.asarray(bandwidths(e, host_stream(e.seed, Stream.BANDWIDTH)), real),
        adjacency=network.links,
        neighbors=network.neighbors,
        shards=shards,
    )


def _in_two(exact: np.ndarray, real: Any) -> tuple[Array, Array]:
    """Numbers as their rounded values and the rest, which together are exact."""
    rounded = exact.astype(real)
    return jnp.asarray(rounded), jnp.asarray((exact - rounded).astype(real))


def stack(hypers: list[Hyper]) -> Hyper:
    """The values of several runs as one batch."""
    networks = pad_networks([Network(hyper.adjacency, hyper.neighbors) for hyper in hypers])
    hypers = [
        hyper._replace(adjacency=network.links, neighbors=network.neighbors)
        for hyper, network in zip(hypers, networks, strict=True)
    ]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *hypers)
