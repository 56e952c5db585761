"""Curves of sweeps against what runs had spent: common costs of several seeds, and their axis."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from efhc_jax.plotting.styles import TITLES
from efhc_jax.results.costs import cost_at_evaluations
from efhc_jax.results.statistics import Interval, interval, per_run

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

_FAR_APART = 20  # ratio of the totals of two lines from which on an axis is logarithmic
_COUNTS = ("messages", "bits")  # costs that are large whole numbers


def over_common_cost(
    part: xarray.Dataset,
    variable: str = "accuracy",
    cost: str = "time",
    points: int = 60,
    *,
    logarithmic: bool = False,
) -> tuple[np.ndarray, Interval]:
    """A variable of several seeds, interpolated at common costs; accuracies in per cent.

    The costs end where the first seed ends. A seed that diverged does not count for that, and has no
    values afterwards.

    Args:
        part: the runs, which differ in their seeds.
        variable: the variable.
        cost: the cost.
        points: number of common costs.
        logarithmic: whether costs have equal ratios instead of equal distances. They begin where each
            seed has been evaluated after something was spent.
    """
    import xarray

    runs, times = _seeds(part), _costs_of_seeds(part, cost)
    last = _end(times)
    common = np.linspace(0, last, points)
    spent = [time[time > 0].min() for time in times if (time > 0).any()]
    if logarithmic and spent and last > 0:
        first = max(spent) if max(spent) < last else min(*spent, last)
        common = np.geomspace(first, last, points)
    values = per_run(runs, variable).transpose("seed", "evaluation").values
    values = 100 * values if "accuracy" in variable else values
    rows = [_interpolated(common, time, row) for time, row in zip(times, values, strict=True)]
    return common, interval(xarray.DataArray(rows, dims=("seed", "time")))


def far_apart(parts: Iterable[xarray.Dataset], cost: str) -> bool:
    """Whether the totals of several lines differ by orders of magnitude."""
    if cost == "iteration":
        return False
    totals = [_end(_costs_of_seeds(part, cost)) for part in parts]
    return min(totals) > 0 and max(totals) >= _FAR_APART * min(totals)


def finish_axis(axes: Axes, cost: str, logarithmic: bool = False) -> None:
    """Title and scale of an axis of costs, with prefixes such as k, M and G for large counts."""
    from matplotlib.ticker import EngFormatter

    axes.set(xlabel=TITLES[cost])
    if logarithmic:
        axes.set_xscale("log")
    else:
        axes.set_xlim(left=0)
    if cost in _COUNTS:
        axes.xaxis.set_major_formatter(EngFormatter())


def _seeds(part: xarray.Dataset) -> xarray.Dataset:
    return part if "seed" in part.dims else part.expand_dims("seed")


def _costs_of_seeds(part: xarray.Dataset, cost: str) -> list[np.ndarray]:
    """The costs at the evaluations of each seed."""
    runs = _seeds(part)
    return [cost_at_evaluations(runs.isel(seed=seed), cost) for seed in range(runs.sizes["seed"])]


def _end(times: list[np.ndarray]) -> float:
    """The cost where the first seed ends, of those that did not diverge."""
    whole = [time[-1] for time in times if np.isfinite(time[-1])]
    return float(min(whole) if whole else max(np.nanmax(time) for time in times))


def _interpolated(at: np.ndarray, time: np.ndarray, row: np.ndarray) -> np.ndarray:
    """A row of values at other times; NaN after its last finite one."""
    known = np.isfinite(time) & np.isfinite(row)
    if not known.any():
        return np.full(len(at), np.nan)
    return np.interp(at, time[known], row[known], right=np.nan)
