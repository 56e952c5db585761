"""Whether the assumptions of Theorem 1 hold for a run, and what threshold its guideline suggests."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple

from efhc_jax import theory
from efhc_jax.config import Experiment
from efhc_jax.connectivity import broadcast_waits, connection_window, links_in_use
from efhc_jax.data import Dataset, load_dataset
from efhc_jax.draws import pinned_settings
from efhc_jax.errors import DataError, ExperimentError
from efhc_jax.results import data_of, policy_of
from efhc_jax.theory import Finding, Optimum, PowerDecay

if TYPE_CHECKING:
    import xarray

_LOCAL_ITERATIONS = 300  # of the short run from which gradients are estimated


@pinned_settings()
def audit(
    run: xarray.Dataset, data: Dataset | None = None, optimum: Optimum | None = None
) -> list[Finding]:
    """Check every assumption of the theorem on a run, and the theorem itself.

    For convex models this solves for the least global loss F*, which takes some seconds to minutes.

    Args:
        run: what `simulate(…, audit=True)` or `efhc run --audit` gave.
        data: what it was trained on, if it was a dataset of your own.
        optimum: F*, if `least_loss` of the same model, data and split has been found before.

    Returns:
        One finding for each assumption or remark, with the number behind it.

    Raises:
        ExperimentError: the run did not keep what this takes.
    """
    if "fired" not in run or "adjacency" not in run:
        raise ExperimentError(
            "audit: the run did not keep its graphs and broadcasts; run it again with audit=True, "
            "or efhc run --audit"
        )
    if not run.sizes["step"]:
        raise ExperimentError("audit: the run diverged at once, so there is nothing to look at")
    experiment = Experiment.from_json(run.attrs["experiment"])
    if data is not None:
        data_of(run, data)
    else:
        with contextlib.suppress(DataError):  # some findings need no data
            data = data_of(run)
    schedule = schedule_of(experiment)
    adjacency = run.adjacency.values.astype(bool)
    graphs = adjacency[0] if experiment.dynamics == "static" else adjacency
    fired = run.fired.values.astype(bool)
    policy = policy_of(run)
    used = links_in_use(policy, fired, graphs)
    window = connection_window(graphs)
    findings = [theory.simultaneous_exchange(used)]
    if not policy.coordinated:
        findings.append(theory.transition_weights(graphs, used))
    findings.append(theory.convexity(experiment.model))
    findings.append(_gradients(experiment, run, data))
    findings += theory.step_sizes(schedule)
    findings.append(theory.physical_connectivity(graphs))
    findings.append(theory.bounded_waits(fired))
    if not policy.coordinated:  # with a coordinator it needs no links
        findings.append(theory.information_flow(used, window, int(broadcast_waits(fired).max())))
    findings.append(theory.threshold_decay(schedule, schedule))
    findings.append(theory.consensus(run.iteration.values, run.consensus_error.values))
    findings.append(_optimality(experiment, run, data, optimum))
    return findings


def schedule_of(experiment: Experiment) -> PowerDecay:
    """α(k) of an experiment, and with it γ(k)."""
    e = experiment
    return PowerDecay(e.learning_rate, e.learning_rate_offset, e.learning_rate_decay)


def least_loss(experiment: Experiment, data: Dataset) -> Optimum | None:
    """F* of an experiment's problem, which its policy and network have no part in.

    Returns:
        None where the model is not known to be convex.
    """
    from efhc_jax.optimum import CONVEX, find_optimum
    from efhc_jax.scenario import split_of

    if experiment.model not in CONVEX:
        return None
    return find_optimum(experiment.model, data, split_of(experiment, data))


class Suggestion(NamedTuple):
    """A scale for the thresholds, and what it then gave."""

    r: float
    largest_gradient: float  # L∞, estimated from a short run without communication
    interval: float  # iterations between two broadcasts of a device, with this r


def suggest_r(experiment: Experiment, every: float, data: Dataset | None = None) -> Suggestion:
    """The r of Remark 2 for about one broadcast every so many iterations: r = (1/ρ)·K·L∞.

    L∞ is the largest gradient entry of a short local run, 1/ρ the mean bandwidth. The guideline assumes
    the largest possible steps in every entry, so devices really broadcast less often, and much less in
    norms that average over entries; the interval that this r gave is returned beside it.

    Args:
        experiment: for what.
        every: K, the wanted iterations between two broadcasts.
        data: a dataset of your own, in place of the one that the experiment names.
    """
    from efhc_jax.simulation import simulate

    if not every > 0:
        raise ExperimentError(f"every={every}: give a number of iterations above 0")
    data = load_dataset(experiment.dataset) if data is None else data
    length = min(experiment.iterations, _LOCAL_ITERATIONS)
    local = experiment.replace(policy="local", iterations=length, eval_every=length)
    short = simulate(local, data, audit=True, progress=False)
    largest = float(short.largest_gradient.max())
    r = theory.guideline(short.bandwidth.values, every, largest)
    chosen = experiment.replace(policy="efhc", r=r, eval_every=experiment.iterations)
    run = simulate(chosen, data, progress=False)
    broadcasts = float(run.broadcasts[-1].mean())
    interval = experiment.iterations / broadcasts if broadcasts else float("inf")
    return Suggestion(r, largest, interval)


def _gradients(experiment: Experiment, run: xarray.Dataset, data: Dataset | None) -> Finding:
    norms = run.gradient_norm.values, run.largest_gradient.values
    if data is None:  # the bound needs the images; what was seen does not
        return theory.bounded_gradients(*norms, None)
    bounds = theory.gradient_bounds(experiment.model, data.train_images, data.classes)
    return theory.bounded_gradients(*norms, bounds)


def _optimality(
    experiment: Experiment, run: xarray.Dataset, data: Dataset | None, optimum: Optimum | None
) -> Finding:
    """Part (b) of the theorem, as far as the run went."""
    from efhc_jax.optimum import CONVEX

    unknown = None
    if experiment.model not in CONVEX:
        unknown = f"{experiment.model} is not known to be convex: there is no F* to compare with"
    elif "global_loss" not in run:
        unknown = "the run did not keep F(w̄); run it again"
    elif data is None:
        unknown = "the training data, for which F* is solved, are not on this machine"
    optimum = optimum or (least_loss(experiment, data) if unknown is None and data is not None else None)
    if unknown is not None or optimum is None:
        return Finding(theory.OPTIMALITY, theory.UNKNOWN, str(unknown), None)
    return theory.optimality(run.iteration.values, run.global_loss.values, optimum)
