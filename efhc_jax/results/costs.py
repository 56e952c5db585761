"""The costs of a run until each evaluation: iterations, transmission time, messages or bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from efhc_jax.errors import ExperimentError

if TYPE_CHECKING:
    import xarray

COSTS = {  # the recorded variable whose sum is the cost; empty for the number of iterations
    "iteration": "",
    "time": "transmission_time",
    "messages": "messages",
    "bits": "bits",
}


def cost_at_evaluations(run: xarray.Dataset, cost: str = "time") -> np.ndarray:
    """The cumulative cost of one run at each evaluation, summed in 64 bits.

    Raises:
        ExperimentError: there is no such cost, or the result has not recorded it.
    """
    check_cost(run, cost)
    if not COSTS[cost]:
        return run.iteration.values.astype(np.float64)
    steps = run[COSTS[cost]].values
    total = np.concatenate([[0.0], np.cumsum(steps, dtype=np.float64)])
    return total[run.iteration.values]


def check_cost(result: xarray.Dataset, cost: str) -> None:
    """Raise unless a result has a cost."""
    if cost not in COSTS:
        raise ExperimentError(f"x={cost}: unknown; choose from {', '.join(COSTS)}")
    if COSTS[cost] and COSTS[cost] not in result:
        raise ExperimentError(
            f"x={cost}: was not recorded in this result, which an earlier version wrote; run it again"
        )
