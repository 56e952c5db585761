"""Figures of a result: the function behind `efhc plot`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from efhc_jax.errors import ExperimentError
from efhc_jax.results.costs import COSTS, check_cost
from efhc_jax.text.names import known_name

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure


def plot(
    result: xarray.Dataset,
    *,
    x: str | None = None,
    y: str = "accuracy",
    hue: str | None = None,
    rows: str | None = None,
    lead: str | None = None,
    iteration: int | None = None,
    budget: float | None = None,
    select: Mapping[str, Any] | None = None,
) -> Figure:
    """Plot a run or a sweep.

    Without `x`: a variable against iterations and against transmission time. With `x` a cost (iteration,
    time, messages or bits): a variable against what had been spent. With `x` an axis of the sweep: a
    variable at one moment of the runs. With `x` and `rows`: a heat map; with `lead` as
    well, a heat map of the difference of a policy from each other one.

    Args:
        result: the result of `simulate`, `sweep` or `load`.
        x: axis of the sweep, or cost, for the x axis.
        y: variable to plot.
        hue: axis of the sweep with a line or a panel per value; by default policy or method.
        rows: axis of the sweep for the rows of a heat map.
        lead: policy whose difference from each other one, paired by seed, is drawn.
        iteration: with `x`, iteration of the evaluation to plot; the last by default.
        budget: with `x`, transmission budget to plot instead; one that was set before the run.
        select: values to select on other axes, for example `{"r": 50}`.

    Returns:
        A Matplotlib figure: `plot(grid).savefig("grid.png")`; a notebook shows it automatically.

    Raises:
        ExperimentError: there is no such variable, axis or value, or an argument has no effect.

    Example:
        >>> import efhc_jax as efhc
        >>> base = efhc.Experiment(dataset="synthetic", iterations=10, eval_every=10)
        >>> grid = efhc.sweep(base, r=[5, 50], seed=range(2))
        >>> figure = plot(grid, x="r", y="consensus_error")
        >>> figure.axes[0].get_xlabel()
        'threshold scale r'
    """
    from efhc_jax.plotting import figures, heat_maps

    for axis, value in (select or {}).items():
        result = selected(result, axis, value)
    axes = figures.swept(result)
    moment = figures.Moment(iteration, budget)
    lines = [name for name in ("policy", "method") if name in axes and name not in (x, rows)]
    chosen_hue = hue or (lines[0] if lines else None)
    is_cost = x in COSTS and x not in axes
    if x is None or is_cost:
        without_axis = {"rows": rows, "lead": lead, "iteration": iteration, "budget": budget}
        for name, value in without_axis.items():
            if value is not None:
                what = "a heat map" if name in ("rows", "lead") else "one moment of the runs"
                raise ExperimentError(
                    f"{name}={value}: {what} is drawn against an axis of the sweep; give x"
                )
        costs = ("iteration", "time") if x is None else (x,)
        for cost in costs:
            check_cost(result, cost)
        if not axes and hue is not None:
            raise ExperimentError(f"hue={hue}: not an axis; this is a single run, which has none")
        if axes:
            return figures.draw_curves(result, chosen_hue or "policy", y, costs)
        return figures.draw_run(result, y, costs)
    if rows is None:
        if lead is not None:
            raise ExperimentError(f"lead={lead}: is drawn as a heat map; give rows as well")
        return figures.draw_lines(result, x, y, chosen_hue, moment)
    if lead is None:
        return heat_maps.draw_heat(result, x, rows, y, chosen_hue, moment)
    if hue is not None:
        raise ExperimentError(f"hue={hue}: has no effect with lead, which has a panel per policy")
    return heat_maps.draw_lead(result, lead, x, rows, y, moment)


def selected(grid: xarray.Dataset, axis: str, wanted: Any) -> xarray.Dataset:
    """The part of a sweep with this value on an axis, given as a value or as text.

    Raises:
        ExperimentError: there is no such axis, or no such value on it.
    """
    if axis not in grid.dims or axis not in grid.coords:
        raise ExperimentError(f"select={axis!r}: not an axis of the sweep")
    values = grid[axis].values.tolist()
    wanted = known_name(wanted, [value for value in values if isinstance(value, str)])
    for value in values:
        if str(value) == str(wanted) or (not isinstance(value, str) and _number(wanted) == value):
            return grid.sel({axis: value})
    raise ExperimentError(f"select={axis}={wanted}: not in the sweep; choose from {values}")


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
