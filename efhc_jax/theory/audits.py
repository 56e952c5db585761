"""Audit of a run against the assumptions of Theorem 1, and the guideline for thresholds."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple

from efhc_jax import theory
from efhc_jax.data import Dataset, load_dataset
from efhc_jax.errors import DataError, ExperimentError
from efhc_jax.experiment.experiment import Experiment
from efhc_jax.experiment.families import AS_LEARNING_RATE, member_of
from efhc_jax.models import MODELS, make_model
from efhc_jax.models.properties import NOTHING_KNOWN, Properties
from efhc_jax.network.connectivity import broadcast_waits, connection_window
from efhc_jax.randomness.draws import pinned_settings
from efhc_jax.results.activity import recorded_links
from efhc_jax.results.datasets import data_of, policy_of
from efhc_jax.theory import Finding, Optimum, PowerDecay
from efhc_jax.theory.methods import asked_by_method

if TYPE_CHECKING:
    import xarray

_UPDATE = "the update of the models (Theorem 1)"
_ANY_IMAGES = (28, 28), 10  # shape and classes of a model whose images are not known
_LOCAL_ITERATIONS = 300  # length of the run from which gradients are estimated


@pinned_settings()
def audit(
    run: xarray.Dataset, data: Dataset | None = None, optimum: Optimum | None = None
) -> list[Finding]:
    """Check a run against every assumption of the theorem, and against the theorem itself.

    The theorem is about EF-HC. Of a run with another method, this checks what the theory of that method
    asks for, and describes the run.

    For models that state that they are convex (`Model.properties`), this computes the minimum F* of the
    global loss, which takes seconds to minutes.

    Args:
        run: the result of `simulate(…, audit=True)` or `efhc run --audit`.
        data: the dataset that it was trained on, if it is a custom one.
        optimum: F*, if `least_loss` of the same model, data and split is already known.

    Returns:
        One finding per assumption or remark, with the measured value.

    Raises:
        ExperimentError: the run was not recorded for an audit.
    """
    if "fired" not in run or "adjacency" not in run:
        raise ExperimentError(
            "audit: the run did not record its graphs and broadcasts; run it again with audit=True, "
            "or efhc run --audit"
        )
    if not run.sizes["step"]:
        raise ExperimentError("audit: the run diverged in its first iteration; nothing to check")
    experiment = Experiment.from_json(run.attrs["experiment"])
    if data is not None:
        data_of(run, data)
    else:
        with contextlib.suppress(DataError):  # some findings need no data
            data = data_of(run)
    properties = _properties_of(experiment, data)
    adjacency = run.adjacency.values.astype(bool)
    graphs = adjacency[0] if experiment.dynamics == "static" else adjacency
    fired = run.fired.values.astype(bool)
    policy = policy_of(run)
    used = recorded_links(run)
    window = connection_window(graphs)
    if not experiment.is_default("method"):
        findings = [*_of_other_method(experiment), *asked_by_method(experiment, adjacency, used)]
        findings.append(theory.convexity(experiment.model, properties))
        findings.append(theory.physical_connectivity(graphs))
        findings.append(theory.bounded_waits(fired))
        findings.append(theory.consensus(run.iteration.values, run.consensus_error.values))
        findings.append(_optimality(experiment, properties, run, data, optimum))
        return [one._replace(name=_without_number(one.name)) for one in findings]
    findings = _local_training(experiment)
    findings.append(theory.simultaneous_exchange(used))
    if not policy.coordinated:
        findings.append(theory.transition_weights(graphs, used))
    findings.append(theory.convexity(experiment.model, properties))
    findings.append(_gradients(properties, run, data))
    findings += _step_sizes(experiment)
    findings.append(theory.physical_connectivity(graphs))
    findings.append(theory.bounded_waits(fired))
    if not policy.coordinated:  # a coordinator needs no links
        findings.append(theory.information_flow(used, window, int(broadcast_waits(fired).max())))
    findings.append(_threshold_decay(experiment))
    findings.append(theory.consensus(run.iteration.values, run.consensus_error.values))
    findings.append(_optimality(experiment, properties, run, data, optimum))
    return findings


def _of_other_method(experiment: Experiment) -> list[Finding]:
    """The finding that the theorem says nothing about a method."""
    figure = (
        f"the theorem is about W ← P·W − α·G; this run has method={str(experiment.method)!r}, so "
        "what it assumes and claims is not checked"
    )
    return [Finding(_UPDATE, "does not hold", figure, None)]


def _local_training(experiment: Experiment) -> list[Finding]:
    """Whether devices take the gradient steps of the theorem."""
    others = [
        f"{name}={experiment[name]!r}"
        for name in ("optimizer", "local_steps", "participation")
        if not experiment.is_default(name)
    ]
    if not others:
        return []
    figure = f"the theorem is about W ← P·W − α·G; this run has {', '.join(others)}"
    return [Finding(_UPDATE, "does not hold", figure, None)]


def _without_number(name: str) -> str:
    """The name of a finding without its number in the paper, except where that is its subject."""
    return name if name == _UPDATE or "theory of the method" in name else name.split(" (")[0]


def _step_sizes(experiment: Experiment) -> tuple[Finding, ...]:
    alpha = _law_of(experiment, "learning_rate_schedule", experiment.learning_rate)
    if alpha is None:
        return theory.unknown_step_sizes(_not_a_power("α", experiment.learning_rate_schedule))
    return theory.step_sizes(alpha)


def step_size_in_words(experiment: Experiment) -> str:
    """α(k) as a formula, or the name of its schedule."""
    alpha = _law_of(experiment, "learning_rate_schedule", experiment.learning_rate)
    scaled = f"{experiment.learning_rate:g}·{experiment.learning_rate_schedule}"
    return scaled if alpha is None else str(alpha)


def _threshold_decay(experiment: Experiment) -> Finding:
    """Remark 3, on γ(k)/α(k); it says nothing about thresholds that do not follow γ(k)."""
    policy = member_of("policy", experiment.policy)
    uses, memory = getattr(policy, "uses", None), getattr(policy, "init", None)
    if memory is not None or (uses and "threshold_schedule" not in uses):
        return theory.unknown_threshold_decay(
            f"the thresholds of policy={str(experiment.policy)!r} do not follow γ(k) alone"
        )
    if experiment.threshold_schedule == AS_LEARNING_RATE:  # γ = α, whatever it is
        return theory.threshold_decay(PowerDecay(), PowerDecay())
    alpha = _law_of(experiment, "learning_rate_schedule", experiment.learning_rate)
    gamma = _law_of(experiment, "threshold_schedule", 1.0)
    if alpha is None:
        return theory.unknown_threshold_decay(_not_a_power("α", experiment.learning_rate_schedule))
    if gamma is None:
        return theory.unknown_threshold_decay(_not_a_power("γ", experiment.threshold_schedule))
    return theory.threshold_decay(alpha, gamma)


def _not_a_power(symbol: str, schedule: str) -> str:
    return f"{symbol}(k) of the schedule {str(schedule)!r} is not known for all k, only for this run"


def _law_of(experiment: Experiment, setting: str, scale: float) -> PowerDecay | None:
    """The power of k that a schedule is; None if it is not one, or not registered here."""
    schedule = member_of(setting, experiment[setting])
    law = getattr(schedule, "law", None)
    return None if law is None else law(scale, experiment.parameters(setting))


def least_loss(experiment: Experiment, data: Dataset) -> Optimum | None:
    """F* of an experiment; it does not depend on the policy or the network.

    Returns:
        F*, or None if the model does not state that it is convex.
    """
    from efhc_jax.runs.prepare import split_of
    from efhc_jax.theory.optimum import find_optimum

    if not _properties_of(experiment, data).convex:
        return None
    own = experiment.parameters("model")
    model = make_model(experiment.model, data.image_shape, data.classes, own)
    return find_optimum(model, data, split_of(experiment, data))


class Suggestion(NamedTuple):
    """A scale for the thresholds, and the interval between broadcasts that it gives."""

    r: float
    largest_gradient: float  # L∞, estimated from a short run without communication
    interval: float  # mean number of iterations between broadcasts of a device, with this r


def suggest_r(experiment: Experiment, every: float, data: Dataset | None = None) -> Suggestion:
    """The r of Remark 2 for about one broadcast in K iterations: r = (1/ρ)·K·L∞.

    L∞ is the largest gradient entry of a short local run, 1/ρ the mean bandwidth. The guideline assumes
    the largest possible step in every entry, so devices broadcast less often than that, and much less
    with norms that average over entries. The measured interval is therefore returned as well.

    Args:
        experiment: the experiment to suggest r for.
        every: K, the desired number of iterations between broadcasts.
        data: a dataset to use instead of the one that the experiment names.
    """
    from efhc_jax.runs.prepare import first_rates
    from efhc_jax.runs.simulation import simulate

    if not every > 0:
        raise ExperimentError(f"every={every}: give a number of iterations above 0")
    data = load_dataset(experiment.dataset) if data is None else data
    length = min(experiment.iterations, _LOCAL_ITERATIONS)
    local = experiment.replace(policy="local", iterations=length, eval_every=length)
    short = simulate(local, data, audit=True, progress=False)
    largest = float(short.largest_gradient.max())
    rate, decay = first_rates(experiment)
    r = theory.guideline(short.bandwidth.values, every, largest, rate / decay)
    chosen = experiment.replace(policy="efhc", r=r, eval_every=experiment.iterations)
    run = simulate(chosen, data, progress=False)
    broadcasts = float(run.broadcasts[-1].mean())
    interval = experiment.iterations / broadcasts if broadcasts else float("inf")
    return Suggestion(r, largest, interval)


def _properties_of(experiment: Experiment, data: Dataset | None) -> Properties:
    """Known properties of the loss of an experiment; none if its model is not registered here.

    Without data only convexity matters, which does not depend on the shape of the images.
    """
    if experiment.model not in MODELS:
        return NOTHING_KNOWN
    own = experiment.parameters("model")
    if data is not None:
        return make_model(experiment.model, data.image_shape, data.classes, own).properties
    with contextlib.suppress(ValueError):  # the model may not take images of this shape
        return make_model(experiment.model, *_ANY_IMAGES, own).properties
    return NOTHING_KNOWN


def _gradients(properties: Properties, run: xarray.Dataset, data: Dataset | None) -> Finding:
    norms = run.gradient_norm.values, run.largest_gradient.values
    if data is None:  # the bound needs the images; the measured values do not
        return theory.bounded_gradients(*norms, None)
    bounds = theory.gradient_bounds(properties, data.train_images)
    return theory.bounded_gradients(*norms, bounds)


def _optimality(
    experiment: Experiment,
    properties: Properties,
    run: xarray.Dataset,
    data: Dataset | None,
    optimum: Optimum | None,
) -> Finding:
    """Part (b) of the theorem: F(w̄) − F* in this run."""
    unknown = None
    if not properties.convex:
        unknown = f"{experiment.model} is not known to be convex, so there is no F* to compare with"
    elif "global_loss" not in run:
        unknown = "the run did not record F(w̄); run it again"
    elif data is None:
        unknown = "the training data, which F* depends on, are not on this machine"
    optimum = optimum or (least_loss(experiment, data) if unknown is None and data is not None else None)
    if unknown is not None or optimum is None:
        return Finding(theory.OPTIMALITY, theory.UNKNOWN, str(unknown), None)
    return theory.optimality(run.iteration.values, run.global_loss.values, optimum)
