"""Whether the assumptions of Theorem 1 hold for a run, and what threshold its guideline suggests."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from efhc_jax import theory
from efhc_jax.config import Experiment
from efhc_jax.connectivity import broadcast_waits, connection_window, used_links_of
from efhc_jax.data import Dataset, load_dataset
from efhc_jax.errors import DataError, ExperimentError
from efhc_jax.policies import POLICIES
from efhc_jax.theory import Finding, PowerDecay

if TYPE_CHECKING:
    import xarray

_LOCAL_ITERATIONS = 300  # of the short run from which gradients are estimated


def audit(run: xarray.Dataset, data: Dataset | None = None) -> list[Finding]:
    """Check every assumption of the theorem on a run.

    Args:
        run: what `simulate(…, audit=True)` or `efhc run --audit` gave.
        data: what it was trained on, if it was a dataset of your own.

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
    experiment = Experiment.from_json(run.attrs["experiment"])
    schedule = PowerDecay(
        experiment.learning_rate, experiment.learning_rate_offset, experiment.learning_rate_decay
    )
    adjacency = run.adjacency.values.astype(bool)
    graphs = adjacency[0] if experiment.dynamics == "static" else adjacency
    fired = run.fired.values.astype(bool)
    used = _used_links(experiment, fired, graphs)
    window = connection_window(graphs)
    findings = [theory.simultaneous_exchange(used)]
    if not POLICIES[experiment.policy].coordinated:
        findings.append(theory.transition_weights(graphs, used))
    findings.append(theory.convexity(experiment.model))
    findings.append(_gradients(experiment, run, data))
    findings += theory.step_sizes(schedule)
    findings.append(theory.physical_connectivity(graphs))
    findings.append(theory.bounded_waits(fired))
    findings.append(theory.information_flow(used, window, int(broadcast_waits(fired).max())))
    findings.append(theory.threshold_decay(schedule, schedule))
    findings.append(_consensus(run))
    return findings


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


def _used_links(experiment: Experiment, fired: np.ndarray, graphs: np.ndarray) -> np.ndarray:
    policy = POLICIES[experiment.policy]
    if policy.coordinated or not policy.uses_new_links:
        return np.zeros((*fired.shape, fired.shape[1]), bool)
    return used_links_of(fired, graphs)


def _gradients(experiment: Experiment, run: xarray.Dataset, data: Dataset | None) -> Finding:
    norms = run.gradient_norm.values, run.largest_gradient.values
    try:
        data = load_dataset(experiment.dataset) if data is None else data
    except DataError:  # the bound needs the images; what was seen does not
        return theory.bounded_gradients(*norms, None)
    bounds = theory.gradient_bounds(experiment.model, data.train_images, data.classes)
    return theory.bounded_gradients(*norms, bounds)


def _consensus(run: xarray.Dataset) -> Finding:
    """Part (a) of the theorem, as far as the run went."""
    iterations, error = run.iteration.values, run.consensus_error.values
    if len(iterations) < 4:
        figure = f"{error[0]:.3g} at first, {error[-1]:.3g} at last; too few evaluations for a fit"
        return Finding("Theorem 1a: consensus", "cannot be known from a finite run", figure, None)
    fit = theory.decay_fit(iterations, error)
    trend = (
        f"falling like k^-{fit.exponent:.2f}" if fit.exponent > 0 else "not falling in its second half"
    )
    figure = f"{fit.first:.3g} at first, {fit.last:.3g} at last, {trend}"
    return Finding("Theorem 1a: consensus", "cannot be known from a finite run", figure, fit.exponent)
