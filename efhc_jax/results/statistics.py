"""Statistics of a sweep: intervals over seeds, paired differences, accuracy at a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from efhc_jax.errors import ExperimentError
from efhc_jax.text.names import known_name

if TYPE_CHECKING:
    import xarray

Method = Literal["student", "bootstrap"]

_RESAMPLES = 10_000


class Interval(NamedTuple):
    """A mean over seeds with its confidence interval and the number of seeds."""

    mean: xarray.DataArray
    low: xarray.DataArray
    high: xarray.DataArray
    seeds: (
        xarray.DataArray
    )  # number of seeds with a value; runs that diverged or missed a budget have none


def interval(
    values: xarray.DataArray,
    over: str = "seed",
    *,
    confidence: float = 0.95,
    method: Method = "student",
) -> Interval:
    """Mean over a dimension, with its confidence interval.

    Args:
        values: one value per seed, with any other dimensions.
        over: the dimension of independent repetitions.
        confidence: the probability that an interval contains the true mean.
        method: "student" for the t interval, "bootstrap" for percentiles of 10,000 resampled means.

    Returns:
        Four arrays without the dimension: the mean, the bounds of the interval, and the number of
        repetitions with a value, from which both are computed. With fewer than two, low and high are
        NaN.
    """
    if over not in values.dims:
        values = values.expand_dims(over)
    bounds = {"student": _student, "bootstrap": _bootstrap}
    if method not in bounds:
        raise ExperimentError(f"method={method!r}: unknown; choose from student, bootstrap")
    seeds = values.count(over)
    low, high = bounds[method](values, over, confidence)
    some = seeds >= 2
    return Interval(values.mean(over), low.where(some), high.where(some), seeds)


def _student(
    values: xarray.DataArray, over: str, confidence: float
) -> tuple[xarray.DataArray, xarray.DataArray]:
    """The bounds of the t interval."""
    import xarray
    from scipy.stats import t

    mean, count = values.mean(over), values.count(over)
    with np.errstate(invalid="ignore", divide="ignore"):  # where there is no interval
        error = ((values - mean) ** 2).sum(over) / ((count - 1) * count)
        reach = xarray.apply_ufunc(t.ppf, (1 + confidence) / 2, count - 1) * np.sqrt(error)
    return mean - reach, mean + reach


def _bootstrap(
    values: xarray.DataArray, over: str, confidence: float
) -> tuple[xarray.DataArray, xarray.DataArray]:
    """Percentiles of the means of resampled repetitions; those without a value are not drawn."""
    import xarray

    def ends(rows: np.ndarray) -> np.ndarray:
        flat = rows.reshape(-1, rows.shape[-1])
        found = np.full((len(flat), 2), np.nan)
        tails = [(1 - confidence) / 2, (1 + confidence) / 2]
        for present in np.unique(np.isfinite(flat), axis=0):
            cells = (np.isfinite(flat) == present).all(1)
            count = int(present.sum())
            if count:
                draws = np.random.default_rng(0).integers(count, size=(_RESAMPLES, count))
                weights = np.stack([np.bincount(d, minlength=count) for d in draws]) / count
                found[cells] = np.quantile(flat[cells][:, present] @ weights.T, tails, axis=1).T
        return found.reshape(*rows.shape[:-1], 2)

    both = xarray.apply_ufunc(ends, values, input_core_dims=[[over]], output_core_dims=[["end"]])
    return both.isel(end=0), both.isel(end=1)


def compare(
    grid: xarray.Dataset,
    axis: str,
    baseline: Any,
    *,
    variable: str = "accuracy",
    confidence: float = 0.95,
    method: Method = "student",
) -> xarray.Dataset:
    """Differences from a baseline, paired by seed, with confidence intervals.

    Args:
        grid: a sweep with several seeds.
        axis: the axis to compare along, for example "policy".
        baseline: the value of the axis that the others are compared with, for example "zt".
        variable: the variable to compare; it is averaged over devices.
        confidence: the probability that an interval contains the true difference.
        method: "student" or "bootstrap".

    Returns:
        `difference`, `low`, `high` and `seeds`, for every other value of the axis. `seeds` is the
        number of pairs: a seed counts if both of its runs have a value.

    Example:
        >>> import efhc_jax as efhc
        >>> base = efhc.Experiment(dataset="synthetic", iterations=10, eval_every=10)
        >>> grid = efhc.sweep(base, policy=["efhc", "zt"], seed=range(3))
        >>> compare(grid, "policy", baseline="zt").policy.values.tolist()
        ['efhc']
    """
    values = per_run(grid, variable)
    found = compare_values(values, axis, baseline, confidence=confidence, method=method)
    return found.assign_attrs(variable=variable)


def compare_values(
    values: xarray.DataArray,
    axis: str,
    baseline: Any,
    *,
    confidence: float = 0.95,
    method: Method = "student",
) -> xarray.Dataset:
    """The same as `compare`, for values (…, seed) that have been taken from a sweep."""
    import xarray

    check_dimension(values, axis)
    known = values[axis].values.tolist()
    baseline = known_name(baseline, [value for value in known if isinstance(value, str)])
    if baseline not in known:
        raise ExperimentError(f"baseline={baseline!r}: not on the axis {axis}, which has {known}")
    if values.sizes.get("seed", 1) < 2:
        raise ExperimentError("seed: a paired interval needs at least 2 seeds in the sweep")
    others = [value for value in known if value != baseline]
    differences = values.sel({axis: others}) - values.sel({axis: baseline}, drop=True)
    found = interval(differences, confidence=confidence, method=method)
    attrs = {"baseline": baseline, "method": method, "confidence": confidence}
    names = ("difference", "low", "high", "seeds")
    return xarray.Dataset(dict(zip(names, found, strict=True)), attrs=attrs)


def at_budget(grid: xarray.Dataset, budget: float | list[float]) -> xarray.DataArray:
    """Accuracy of each device after the first iteration whose cumulative time reaches a budget.

    The models of exactly that iteration were evaluated; nothing is interpolated. NaN if a run ended
    before.

    Args:
        grid: a run or a sweep of an experiment with `budgets`.
        budget: one or more of these budgets.
    """
    if "accuracy_at_budget" not in grid:
        raise ExperimentError(
            "budgets: none were set before the run; give Experiment(budgets=[…]) and run again"
        )
    known = grid.budget.values.tolist()
    for one in np.atleast_1d(budget).tolist():
        if one not in known:
            raise ExperimentError(f"budget={one:g}: not set before the run; choose from {known}")
    return grid.accuracy_at_budget.sel(budget=budget)


def check_variable(grid: xarray.Dataset, variable: str) -> None:
    """Raise unless the results have the variable."""
    if variable not in grid.data_vars:
        raise ExperimentError(f"{variable}: not in the results; choose from {', '.join(map(str, grid))}")


def per_run(grid: xarray.Dataset, variable: str) -> xarray.DataArray:
    """A variable, averaged over devices."""
    check_variable(grid, variable)
    values = grid[variable]
    return values.mean("device") if "device" in values.dims else values


def check_dimension(values: xarray.DataArray, axis: str) -> None:
    """Raise unless the values have the axis."""
    if not values.dims:
        raise ExperimentError(f"{axis}: not an axis; this is a single run, which has none")
    if axis not in values.dims:
        raise ExperimentError(
            f"{axis}: not an axis of this sweep; it has {', '.join(map(str, values.dims))}"
        )
