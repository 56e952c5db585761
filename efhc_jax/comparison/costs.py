"""Accuracy at equal costs: bits, transmission time and gradient steps.

Bits and transmission time are measured in *rounds*: the cost of every device sending its model to all
its neighbours once, in the network of the run. An iteration of D-PSGD costs one round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from efhc_jax.engine.messages import BITS_PER_NUMBER
from efhc_jax.results.costs import cost_at_evaluations
from efhc_jax.results.selection import setting_of
from efhc_jax.results.statistics import per_run

if TYPE_CHECKING:
    import xarray

COSTS = {"bits": "bits sent", "time": "transmission time", "gradients": "gradient steps"}


class Criterion(NamedTuple):
    """A cost, and the budget of it at which contenders are compared."""

    cost: str
    budget: float

    @property
    def text(self) -> str:
        """In words."""
        if self.cost == "gradients":
            return f"{self.budget:,.0f} gradient steps"
        what = "bits" if self.cost == "bits" else "transmission time"
        return f"the {what} of {self.budget:,.0f} rounds"


def spent(run: xarray.Dataset, cost: str) -> np.ndarray:
    """The cumulative cost of one run at each evaluation: in rounds, or gradient steps."""
    if cost == "gradients":
        return run.iteration.values * float(setting_of(run).local_steps)
    degree, size = run.degree.values, int(run.attrs["parameters"])
    if cost == "bits":
        round_costs = BITS_PER_NUMBER * size * float(degree.sum())
    else:
        round_costs = float(np.mean(np.where(degree > 0, size / run.bandwidth.values, 0)))
    return cost_at_evaluations(run, cost) / round_costs


def accuracy_within(run: xarray.Dataset, criterion: Criterion) -> float:
    """Accuracy in per cent after a run has spent a budget, interpolated between evaluations.

    A run that ends before keeps its last accuracy, because it has spent no more. NaN if it diverged.
    """
    values, costs = 100 * per_run(run, "accuracy").values, spent(run, criterion.cost)
    if not (np.isfinite(values).all() and np.isfinite(costs).all()):
        return float("nan")
    return float(np.interp(criterion.budget, costs, values))
