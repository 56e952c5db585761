"""From an experiment to the compiled program: its static part, and the values of a run."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from efhc_jax.data import DATASETS, Dataset, check_own, load_dataset
from efhc_jax.data.splits import Shards, split_data
from efhc_jax.engine.program import Spec, laid_out
from efhc_jax.engine.sharding import SINGLE, Layout
from efhc_jax.engine.step import Rules
from efhc_jax.engine.values import RunValues
from efhc_jax.experiment.experiment import Experiment, StoredName
from efhc_jax.models import make_model
from efhc_jax.network.dynamics import DYNAMICS, DynamicsValues, NetworkValues
from efhc_jax.network.graph_files import read_graphs
from efhc_jax.network.proximity import neighbor_capacity
from efhc_jax.network.slots import (
    Network,
    exact_link_numbers,
    in_slots,
    make_network,
    pad_networks,
    refitted,
)
from efhc_jax.network.topologies import GRAPHS, NetworkSettings, checked_links, connected_places
from efhc_jax.policies import POLICIES
from efhc_jax.policies.checks import compiled_policies
from efhc_jax.randomness.draws import pinned_settings, run_key
from efhc_jax.randomness.streams import Stream, host_stream
from efhc_jax.resources.bandwidth import bandwidths


def with_data(experiment: Experiment, data: Dataset | None) -> tuple[Experiment, Dataset]:
    """The data of an experiment, and the experiment under their name.

    Args:
        experiment: the settings.
        data: a dataset to use instead of the one that the experiment names.
    """
    if data is None:
        return experiment, load_dataset(experiment.dataset)
    name = check_own(data).name
    own_name = name if name in DATASETS else StoredName(name)
    return experiment.inherit({"dataset": own_name}), data


@pinned_settings()
def prepare(experiment: Experiment, dataset: Dataset) -> RunValues:
    """Draw the network, the bandwidths and the split of one experiment."""
    e = experiment
    real = jnp.result_type(float)
    return RunValues(
        key=run_key(e.seed),
        policy=jnp.asarray(list(POLICIES).index(e.policy), jnp.int32),
        r=jnp.asarray(e.r, real),
        learning_rate=(
            jnp.asarray(e.learning_rate, real),
            jnp.asarray(e.learning_rate_offset, real),
            jnp.asarray(e.learning_rate_decay, real),
        ),
        budgets=_in_two(np.asarray(e.budgets), real),
        bandwidth=jnp.asarray(_bandwidths(e), real),
        network=network_values(e),
        shards=split_of(e, dataset),
        absent_train=jnp.asarray(e.absent_train),
    )


def _bandwidths(e: Experiment) -> np.ndarray:
    rng = host_stream(e.seed, Stream.BANDWIDTH)
    return bandwidths(e.devices, e.weak_devices, e.weak_bandwidth, e.strong_bandwidth, rng)


def split_of(experiment: Experiment, dataset: Dataset) -> Shards:
    """The samples of each device."""
    e = experiment
    return split_data(
        e.split,
        dataset.train_labels,
        devices=e.devices,
        labels_per_device=e.labels_per_device,
        dirichlet_alpha=e.dirichlet_alpha,
        minimum=e.batch_size,
        rng=host_stream(e.seed, Stream.SPLIT),
    )


def network_settings(experiment: Experiment) -> NetworkSettings:
    """The settings of an experiment's network."""
    radius = experiment.connectivity
    return NetworkSettings(
        experiment.devices, radius, experiment.placement or radius, experiment.graph_file
    )


@pinned_settings()
def network_values(experiment: Experiment) -> NetworkValues:
    """The network before its dynamics, or the first of a trace, and the parameters of the dynamics.

    Parameters that only other dynamics need are empty.
    """
    e = experiment
    real = jnp.result_type(float)
    settings = network_settings(e)
    places, turn = np.zeros((0, 2)), np.zeros((0, 0), np.int32)
    times, slots = np.zeros(0, np.int32), np.zeros((0, 0, 0), bool)
    if e.dynamics == "trace":
        over_time = read_graphs(e.graph_file, e.devices, e.iterations)
        source = f"graph_file={e.graph_file}, all its graphs together"
        ever = checked_links(over_time.all_links(), e.devices, source, e.allow_disconnected)
        network = make_network(ever, e.devices)
        times = over_time.times.astype(np.int32)
        slots = np.stack([in_slots(links, network) for links in over_time.links])
        network = network._replace(links=jnp.asarray(slots[0]))
    else:
        links = GRAPHS[e.graph](settings, host_stream(e.seed, Stream.GRAPH))
        source = f"graph_file={e.graph_file}" if e.graph == "file" else f"graph={e.graph!r}"
        links = checked_links(links, e.devices, source, e.allow_disconnected)
        room = neighbor_capacity(e.devices, e.connectivity) if e.dynamics == "mobility" else 0
        network = make_network(links, e.devices, room)
        if e.dynamics == "mobility":
            places = connected_places(settings, host_stream(e.seed, Stream.GRAPH))
        if e.dynamics == "periodic":
            turn = _turns(e, network, links)
    dynamics = DynamicsValues(
        link_up=jnp.asarray(e.link_up, real),
        link_failure=jnp.asarray(e.link_failure, real),
        link_repair=jnp.asarray(e.link_repair, real),
        period=jnp.asarray(e.period, jnp.int32),
        turn=jnp.asarray(turn),
        speed=jnp.asarray(e.speed, real),
        radius=jnp.asarray(e.connectivity, real),
        places=jnp.asarray(places, real),
        leave=jnp.asarray(e.leave, real),
        come_back=jnp.asarray(e.come_back, real),
        graphs=(jnp.asarray(times), jnp.asarray(slots)),
    )
    return NetworkValues(run_key(e.seed), network.links, network.neighbors, dynamics)


def _turns(e: Experiment, network: Network, links: np.ndarray) -> np.ndarray:
    """The iteration of a period in which the link of every slot is up, in random order."""
    order = host_stream(e.seed, Stream.NETWORK).permutation(len(links))
    turn_of_link = np.empty(len(links), np.int32)
    turn_of_link[order] = np.arange(len(links)) % e.period
    numbers = links[:, 0].astype(np.int64) * e.devices + links[:, 1]  # in increasing order
    slots = exact_link_numbers(network)
    place = np.minimum(np.searchsorted(numbers, slots), max(len(links) - 1, 0))
    return turn_of_link[place] if len(links) else np.zeros_like(slots, np.int32)


def _in_two(exact: np.ndarray, real: Any) -> tuple[Array, Array]:
    """Numbers as the sum of a rounded value and its rounding error."""
    rounded = exact.astype(real)
    return jnp.asarray(rounded), jnp.asarray((exact - rounded).astype(real))


def stack(runs: list[RunValues]) -> RunValues:
    """The values of several runs as one batch."""
    before = [Network(run.network.adjacency, run.network.neighbors) for run in runs]
    after = pad_networks(before)
    graphs = max(len(run.network.dynamics.graphs[0]) for run in runs)
    fitted = [
        run._replace(network=_fitted(run.network, own, padded, graphs))
        for run, own, padded in zip(runs, before, after, strict=True)
    ]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *fitted)


def _fitted(values: NetworkValues, before: Network, after: Network, graphs: int) -> NetworkValues:
    """The values of a network, padded to the slots and graphs over time of its batch."""
    dynamics = values.dynamics
    if dynamics.turn.size:
        dynamics = dynamics._replace(turn=refitted(dynamics.turn, before, after))
    times, links = dynamics.graphs
    if len(times):
        more = graphs - len(times)
        times = jnp.pad(times, (0, more), constant_values=np.iinfo(np.int32).max)  # never
        links = jnp.pad(refitted(links, before, after), ((0, more), (0, 0), (0, 0)))
        dynamics = dynamics._replace(graphs=(times, links))
    return NetworkValues(values.key, after.links, after.neighbors, dynamics)


def make_spec(
    experiment: Experiment,
    dataset: Dataset,
    layout: Layout = SINGLE,
    policies: Collection[str] | None = None,
) -> Spec:
    """The static part of an experiment.

    Args:
        experiment: a run, or the first of several that share the static part.
        dataset: the data.
        layout: the placement on accelerators.
        policies: all policies of the runs; by default that of the experiment.
    """
    model = make_model(experiment.model, dataset.image_shape, dataset.classes)
    used = {experiment.policy} if policies is None else policies
    rules = Rules(model, compiled_policies(used, experiment.devices), experiment.norm_order)
    dynamics = DYNAMICS[experiment.dynamics]
    return laid_out(Spec(rules, experiment.devices, experiment.batch_size, dynamics, SINGLE), layout)
