"""From an experiment to the compiled program: its static part, and the values of a run."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from efhc_jax.compressors import COMPRESSORS
from efhc_jax.compressors.checks import check_compression
from efhc_jax.data import DATASETS, Dataset, check_own, load_dataset
from efhc_jax.data.splits import Shards, split_data
from efhc_jax.engine.program import Spec, laid_out
from efhc_jax.engine.sharding import SINGLE, Layout
from efhc_jax.engine.step import Rules
from efhc_jax.engine.values import RunValues
from efhc_jax.experiment.experiment import Experiment
from efhc_jax.experiment.families import AS_LEARNING_RATE, member_of, parameters_of
from efhc_jax.experiment.naming import StoredName
from efhc_jax.members import make_parameters
from efhc_jax.members.tracing import as_arrays, texts_of
from efhc_jax.methods import METHODS
from efhc_jax.methods.checks import check_method
from efhc_jax.models import make_model
from efhc_jax.network.dynamics import DYNAMICS
from efhc_jax.network.dynamics.base import Drawing, Dynamics, NetworkValues, Snapshot
from efhc_jax.network.dynamics.checks import check_dynamics, check_snapshots, drawn_by
from efhc_jax.network.geometry import Links
from efhc_jax.network.slots import Network, make_network, pad_networks
from efhc_jax.network.topologies import NetworkSettings, checked_links, draw_links
from efhc_jax.optimizers import OPTIMIZERS
from efhc_jax.optimizers.base import Optimizer
from efhc_jax.optimizers.checks import check_optimizer
from efhc_jax.participation import PARTICIPATION, always
from efhc_jax.participation import base as participation_base
from efhc_jax.participation.base import Participation
from efhc_jax.participation.checks import check_masks, check_participation, values_of
from efhc_jax.policies import POLICIES
from efhc_jax.policies.checks import compiled_policies
from efhc_jax.randomness.draws import pinned_settings, run_key
from efhc_jax.randomness.streams import Stream, host_stream
from efhc_jax.resources.bandwidth import bandwidths
from efhc_jax.schedules import SCHEDULES
from efhc_jax.schedules.base import ScheduleValues, timed, value_at
from efhc_jax.schedules.checks import check_schedule

# Families whose parameters are values of the compiled program; those of the others are used before it.
_TRACED = (
    *("policy", "method", "optimizer", "participation", "dynamics"),
    *("learning_rate_schedule", "threshold_schedule"),
)


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
def prepare(experiment: Experiment, dataset: Dataset, spec: Spec | None = None) -> RunValues:
    """Draw the network, the bandwidths and the split of one experiment.

    Args:
        experiment: the settings.
        dataset: the data.
        spec: the compiled program, which may have more policies than this experiment uses.
    """
    e = experiment
    real = jnp.result_type(float)
    links = links_of(e)
    network, dynamics = network_values(e, links), dynamics_values(e)
    if not DYNAMICS.is_built_in(e.dynamics):
        check_snapshots(e.dynamics, DYNAMICS[e.dynamics], network, dynamics)
    return RunValues(
        key=run_key(e.seed),
        policy=jnp.asarray(list(POLICIES).index(e.policy), jnp.int32),
        policies=_policy_values(e, spec or make_spec(e, dataset)),
        r=jnp.asarray(e.r, real),
        learning_rate=_schedule_values(e, "learning_rate_schedule", e.learning_rate),
        threshold=None
        if e.threshold_schedule == AS_LEARNING_RATE
        else _schedule_values(e, "threshold_schedule", 1.0),
        budgets=_in_two(np.asarray(e.budgets), real),
        bandwidth=jnp.asarray(_bandwidths(e), real),
        network=network,
        dynamics=dynamics,
        shards=split_of(e, dataset),
        method=as_arrays(METHODS[e.method], e.parameters("method")),
        optimizer=as_arrays(OPTIMIZERS[e.optimizer], e.parameters("optimizer")),
        participation=as_arrays(PARTICIPATION[e.participation], e.parameters("participation")),
        taking_part=_drawn_participation(e, links, network),
    )


def _policy_values(e: Experiment, spec: Spec) -> tuple[Any, ...]:
    """The parameters of all policies of a program: those of the experiment, or defaults."""
    found = []
    for name, policy in zip(POLICIES, spec.rules.policies, strict=True):
        own = e.parameters("policy") if name == e.policy else make_parameters(policy, {})
        found.append(as_arrays(policy, own))
    return tuple(found)


def _schedule_values(e: Experiment, setting: str, scale: float) -> ScheduleValues:
    real = jnp.result_type(float)
    own = as_arrays(member_of(setting, e[setting]), e.parameters(setting))
    return ScheduleValues(jnp.asarray(scale, real), own)


def first_rates(experiment: Experiment) -> tuple[float, float]:
    """α(0) and γ(0)."""
    rates = [step_sizes(experiment, 1)[0]]
    if experiment.threshold_schedule != AS_LEARNING_RATE:
        rates.append(_values_of(experiment, "threshold_schedule", 1.0, 1)[0])
    return float(rates[0]), float(rates[-1])


def step_sizes(experiment: Experiment, iterations: int) -> np.ndarray:
    """α(k) of the first iterations, by the schedule of the compiled program."""
    return _values_of(experiment, "learning_rate_schedule", experiment.learning_rate, iterations)


def _values_of(e: Experiment, setting: str, scale: float, iterations: int) -> np.ndarray:
    schedule, values = timed(SCHEDULES[e[setting]], e.iterations), _schedule_values(e, setting, scale)
    return np.asarray(jax.vmap(lambda k: value_at(schedule, values, k))(jnp.arange(iterations)))


def dynamics_values(experiment: Experiment) -> Any:
    """The parameters of the dynamics, as values of the program."""
    return as_arrays(DYNAMICS[experiment.dynamics], experiment.parameters("dynamics"))


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
        parameters=e.parameters("split"),
    )


def network_settings(experiment: Experiment) -> NetworkSettings:
    """The settings of an experiment's network."""
    e = experiment
    placement = e.placement or e.connectivity
    return NetworkSettings(e.devices, e.connectivity, placement, e.graph_file, e.iterations)


def links_of(experiment: Experiment) -> Links:
    """All links of an experiment's network: those that its dynamics bring, or those of its graph."""
    e = experiment
    settings, dynamics = network_settings(e), DYNAMICS[e.dynamics]
    if dynamics.links is not None:
        links = dynamics.links(settings)
        source = f"graph_file={e.graph_file}, all its graphs together"
    else:
        rng = host_stream(e.seed, Stream.GRAPH)
        links = draw_links(e.graph, settings, rng, e.parameters("graph"))
        source = f"graph_file={e.graph_file}" if e.graph == "file" else f"graph={e.graph!r}"
    return checked_links(links, e.devices, source, e.allow_disconnected)


@pinned_settings()
def network_values(experiment: Experiment, links: Links | None = None) -> NetworkValues:
    """The network before its dynamics, and what these draw on the host.

    Args:
        experiment: the settings.
        links: all links, if they have been drawn already.
    """
    e = experiment
    settings, dynamics = network_settings(e), DYNAMICS[e.dynamics]
    links = links_of(e) if links is None else links
    room = 0 if dynamics.room is None else dynamics.room(settings)
    network = make_network(links, e.devices, room)
    drawing = Drawing(settings, e.parameters("dynamics"), e.seed, links, network)
    drawn = drawn_by(e.dynamics, dynamics, drawing)
    first = network.links if drawn.links is None else jnp.asarray(drawn.links)
    return NetworkValues(run_key(e.seed), first, network.neighbors, drawn.values)


def _drawn_participation(e: Experiment, links: Links, network: NetworkValues) -> Any:
    """Everything that the rule of participation draws on the host."""
    participation, parameters = PARTICIPATION[e.participation], e.parameters("participation")
    slots = Network(network.adjacency, network.neighbors)
    rng = host_stream(e.seed, Stream.PARTICIPATION)
    values = values_of(
        e.participation,
        participation,
        participation_base.Drawing(e.devices, e.iterations, links, slots, parameters, rng),
    )
    if not PARTICIPATION.is_built_in(e.participation):
        all_up = Snapshot(network.adjacency, network.neighbors, jnp.ones(e.devices, bool))
        given = (values, as_arrays(participation, parameters), run_key(e.seed), all_up)
        check_masks(e.participation, participation, *given)
    return values


def _in_two(exact: np.ndarray, real: Any) -> tuple[Array, Array]:
    """Numbers as the sum of a rounded value and its rounding error."""
    rounded = exact.astype(real)
    return jnp.asarray(rounded), jnp.asarray((exact - rounded).astype(real))


def stack(
    runs: list[RunValues], dynamics: Dynamics, participation: Participation = always.PARTICIPATION
) -> RunValues:
    """The values of several runs as one batch."""
    before = [Network(run.network.adjacency, run.network.neighbors) for run in runs]
    after = pad_networks(before)
    drawn = [run.network.drawn for run in runs]
    if dynamics.fit is not None:
        drawn = dynamics.fit(drawn, before, after)
    fitted = [
        run._replace(network=NetworkValues(run.network.key, *network, values))
        for run, network, values in zip(runs, after, drawn, strict=True)
    ]
    if participation.fit is not None:
        taking_part = participation.fit([run.taking_part for run in fitted], before, after)
        pairs = zip(fitted, taking_part, strict=True)
        fitted = [run._replace(taking_part=values) for run, values in pairs]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *fitted)


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

    Raises:
        ExperimentError: a member that is used cannot be compiled; the message has its name.
    """
    e = experiment
    model = make_model(e.model, dataset.image_shape, dataset.classes, e.parameters("model"))
    shape = jax.eval_shape(model.init, run_key(e.seed)).shape
    used = {e.policy} if policies is None else policies
    check_schedule("learning_rate_schedule", e.learning_rate_schedule)
    threshold = None
    if e.threshold_schedule != AS_LEARNING_RATE:
        check_schedule("threshold_schedule", e.threshold_schedule)
        threshold = timed(SCHEDULES[e.threshold_schedule], e.iterations)
    dynamics = DYNAMICS[e.dynamics]
    check_dynamics(e.dynamics, dynamics)
    rules = Rules(
        model,
        compiled_policies(used, e.devices),
        e.norm_order,
        timed(SCHEDULES[e.learning_rate_schedule], e.iterations),
        threshold,
        method=METHODS[e.method],
        optimizer=_optimizer_of(e, shape),
        local_steps=e.local_steps,
    )
    participation = PARTICIPATION[e.participation]
    check_participation(e.participation, participation)
    _check_method(e, shape)
    spec = Spec(rules, e.devices, e.batch_size, dynamics, SINGLE, _texts(e), participation)
    return laid_out(spec, layout)


def _check_method(e: Experiment, shape: tuple[int, ...]) -> None:
    """Raise unless the method and its compressor can be compiled for models of a shape."""
    own = e.parameters("method")
    check_method(e.method, METHODS[e.method], own, shape)
    compressor = getattr(own, "compressor", None)
    if METHODS[e.method].keeps_copies and compressor in COMPRESSORS:
        check_compression(str(compressor), own, as_arrays(METHODS[e.method], own), shape)


def _optimizer_of(e: Experiment, shape: tuple[int, ...]) -> Optimizer | None:
    """The optimizer of local training; None for plain gradient descent, which needs none."""
    plain = e.optimizer == e.defaults()["optimizer"] and OPTIMIZERS.is_built_in(e.optimizer)
    own = (f"optimizer.{name}" for name in parameters_of("optimizer", e.optimizer))
    if plain and all(e.is_default(name) for name in own):
        return None
    check_optimizer(e.optimizer, OPTIMIZERS[e.optimizer], e.parameters("optimizer"), shape)
    return OPTIMIZERS[e.optimizer]


def _texts(e: Experiment) -> tuple[Any, ...]:
    """Parameters of traced members that are texts, and so a part of the compiled program."""
    found: list[Any] = []
    own = [name for name in COMPRESSORS if not COMPRESSORS.is_built_in(name)]
    for setting in _TRACED:
        texts = texts_of(member_of(setting, e[setting]), e.parameters(setting))
        found += [(setting, str(e[setting]), texts)] if texts else []
        # One that is registered again under its name is another program.
        found += [COMPRESSORS[value] for name, value in texts if name == "compressor" and value in own]
    return tuple(found)
