"""Figures of results. Each policy and each method has the same colour and marker in all of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from efhc_jax.disk.files import written_whole
from efhc_jax.errors import ExperimentError
from efhc_jax.experiment.effects import why_no_effect
from efhc_jax.experiment.experiment import Experiment
from efhc_jax.plotting.cost_axes import far_apart, finish_axis, over_common_cost
from efhc_jax.plotting.styles import LOOKS, TITLES, Look, look_of, look_of_run
from efhc_jax.results.costs import cost_at_evaluations
from efhc_jax.results.selection import setting_of, swept
from efhc_jax.results.statistics import (
    Interval,
    at_budget,
    check_dimension,
    check_variable,
    interval,
    per_run,
)
from efhc_jax.text.printing import in_figure
from efhc_jax.theory import Finding

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_COSTS = ("iteration", "time")
_STRETCHES = 60  # points of a curve of a variable that is recorded in every iteration


def draw_run(run: xarray.Dataset, y: str = "accuracy", costs: Sequence[str] = _COSTS) -> Figure:
    """A variable of one run against iterations and transmission time, with the range over devices.

    Variables that are recorded in every iteration are averaged over intervals, and drawn against
    iterations only.

    Args:
        run: the run.
        y: the variable.
        costs: a panel for each, of `results.costs`.
    """
    experiment = Experiment.from_json(run.attrs["experiment"])
    values = _over_time(run, y)
    costs = _costs_of(values, y, costs)
    figure, panels = subplots(len(costs), sharey=True)
    look = look_of_run(experiment)
    has_devices = "device" in values.dims
    nothing = values * np.nan
    band = Band(values, nothing, nothing)
    if has_devices:
        band = Band(values.mean("device"), values.min("device"), values.max("device"))
    for axes, name in zip(panels, costs, strict=True):
        points = values.step.values if "step" in values.dims else cost_at_evaluations(run, name)
        draw_band(axes, points, band, look)
        finish_axis(axes, name)
    panels[0].set(ylabel=in_figure(TITLES.get(y, y)))
    order = "worst to best" if "accuracy" in y else "lowest to highest"
    title = f"line: mean; shade: {order} device" if has_devices else None
    panels[0].legend(title=title, title_fontsize="small")
    figure.suptitle(in_figure(describe(experiment)))
    return figure


def draw_curves(
    grid: xarray.Dataset, hue: str = "policy", y: str = "accuracy", costs: Sequence[str] = _COSTS
) -> Figure:
    """A variable of a sweep against iterations and against transmission time, with a line per hue.

    Variables that are recorded in every iteration are averaged over intervals, and drawn against
    iterations only.

    Args:
        grid: the sweep.
        hue: the axis with a line per value.
        y: the variable.
        costs: a panel for each, of `results.costs`.
    """
    if hue != "policy":
        check_dimension(grid.accuracy, hue)
    costs = _costs_of(_over_time(grid, y), y, costs)
    grid = only(grid, {hue, "seed"})
    setting = setting_of(grid)
    figure, panels = subplots(len(costs), sharey=True)
    lines = parts_of(grid, hue)
    logarithmic = {name: far_apart([part for _, part in lines], name) for name in costs}
    for position, (value, part) in enumerate(lines):
        look = look_of_run(setting) if value is None else look_of(hue, value, position)
        values = _over_time(part, y)
        values = values.mean("device") if "device" in values.dims else values
        for axes, name in zip(panels, costs, strict=True):
            if name == "iteration":
                x = values.step.values if "step" in values.dims else part.iteration.values
                draw_band(axes, x, interval(values), look)
            else:
                over = over_common_cost(part, y, name, logarithmic=logarithmic[name])
                draw_band(axes, *over, look)
    for axes, name in zip(panels, costs, strict=True):
        finish_axis(axes, name, logarithmic[name])
    panels[0].set(ylabel=in_figure(TITLES.get(y, y)))
    if "accuracy" in y:
        keep_to_percent(panels[0])
    panels[0].legend(**_legend(grid))
    figure.suptitle(in_figure(describe(setting, swept(grid))))
    return figure


def _costs_of(values: xarray.DataArray, y: str, costs: Sequence[str]) -> Sequence[str]:
    """The costs that a variable can be drawn against; of one recorded in every iteration, iterations."""
    if "step" not in values.dims:
        return costs
    if "iteration" not in costs:
        raise ExperimentError(
            f"x={costs[0]}: y={y} is recorded in every iteration, and drawn against iterations; "
            "leave x out"
        )
    return ["iteration"]


def _over_time(part: xarray.Dataset, y: str) -> xarray.DataArray:
    """A variable over evaluations, or over intervals of iterations; accuracies in per cent."""
    check_variable(part, y)
    values = part[y]
    if "step" in values.dims and set(values.dims) <= {"step", "device", *swept(part)}:
        length = max(1, values.sizes["step"] // _STRETCHES)
        values = values.coarsen(step=length, boundary="trim").mean()
        values = values.assign_coords(step=(np.arange(values.sizes["step"]) + 0.5) * length)
    elif "evaluation" not in values.dims:
        raise ExperimentError(f"y={y}: is not a time series; choose from {', '.join(_courses(part))}")
    return 100 * values if "accuracy" in y else values


def _courses(part: xarray.Dataset) -> list[str]:
    known = {"step", "device", "evaluation", *swept(part)}
    return [
        str(name)
        for name, values in part.data_vars.items()
        if set(values.dims) <= known and {"step", "evaluation"} & set(values.dims)
    ]


def draw_lines(
    grid: xarray.Dataset, x: str, y: str, hue: str | None = None, moment: Moment | None = None
) -> Figure:
    """A variable at one moment of the runs, against an axis of the sweep."""
    moment = moment or Moment()
    check_axes(moment.of(grid, y), x, hue)
    grid = only(grid, {x, hue, "seed"})
    values = moment.of(grid, y)
    figure, (axes,) = subplots(1)
    for position, (value, part) in enumerate(parts_of(values, hue)):
        look = look_of(hue or "", value if hue else "", position)
        band = over_seeds(part, x, hue)
        draw_band(axes, np.asarray(part[x].values), band, look, every=1)
        _mark_incomplete(axes, part, band, x, look)
    axes.set(xlabel=in_figure(TITLES.get(x, x)), ylabel=in_figure(TITLES.get(y, y)))
    if "accuracy" in y:
        keep_to_percent(axes)
    if np.issubdtype(values[x].dtype, np.number):
        _scale(axes, values[x].values)
        axes.set_xticks(values[x].values, [f"{value:g}" for value in values[x].values])
        axes.minorticks_off()
    elif values[x].dtype.kind in "UO":
        axes.set_xticks(range(values.sizes[x]), [in_figure(value) for value in values[x].values])
    if hue:
        axes.legend(**_legend(grid))
    axes.set_title(moment.text(grid, y) + _left_out(values), fontsize="medium")
    figure.suptitle(in_figure(describe(setting_of(grid), swept(grid))), fontsize="medium")
    return figure


def _mark_incomplete(axes: Axes, part: xarray.DataArray, band: Interval, x: str, look: Look) -> None:
    """Hollow markers where seeds are left out of the mean."""
    total = part.sizes.get("seed", 1) if x != "seed" else 1
    some = np.asarray((band.seeds < total) & (band.seeds > 0))
    points, means = np.asarray(part[x].values), np.asarray(band.mean)
    if some.any():
        axes.plot(points[some], means[some], look.marker, color=look.color, mfc="white", ms=7)


def _left_out(values: xarray.DataArray) -> str:
    """The number of runs without a value, as a line for the title."""
    missing, total = int(values.isnull().sum()), values.size
    if not missing:
        return ""
    return f"\n{missing:,} of {total:,} runs have no value; hollow: mean of the others"


def draw_convergence(findings: Sequence[Finding], title: str) -> Figure:
    """Quantities that converge to 0 by the theorem, with their fitted decay, on logarithmic axes."""
    shown = [(finding, finding.curve) for finding in findings if finding.curve is not None]
    figure, all_axes = subplots(len(shown))
    for axes, (finding, curve) in zip(all_axes, shown, strict=True):
        after_start = curve.iterations > 0
        k = curve.iterations[after_start]
        axes.plot(k, curve.values[after_start], "o-", color=LOOKS["efhc"].color, ms=4, label="measured")
        if np.isfinite(curve.fit.exponent):
            later = k[k >= curve.iterations[len(curve.iterations) // 2]]
            fitted = curve.fit.scale * later**-curve.fit.exponent
            label = f"fit: $k^{{{-curve.fit.exponent:.2f}}}$"
            axes.plot(later, fitted, "--", color=LOOKS["gt"].color, lw=2.5, label=label)
        axes.axhline(curve.fit.first, color=LOOKS["local"].color, ls=":", label="before the first step")
        axes.set(xscale="log", yscale="log", xlabel=TITLES["iteration"])
        axes.set_title(finding.name, fontsize="medium")
        axes.legend()
    figure.suptitle(in_figure(title))
    return figure


class Moment(NamedTuple):
    """A point in a run: an evaluation, or the iteration that reached a budget.

    Variables that are recorded in every iteration are averaged over those before it.
    """

    iteration: int | None = None  # the last by default
    budget: float | None = None

    def of(self, grid: xarray.Dataset, variable: str) -> xarray.DataArray:
        """The variable at this moment, averaged over devices; accuracies in per cent."""
        if self.budget is not None:
            if self.iteration is not None:
                raise ExperimentError(
                    f"iteration={self.iteration}, budget={self.budget:g}: two moments; give one of them"
                )
            if variable != "accuracy":
                raise ExperimentError(f"y={variable}: not evaluated at budgets; only accuracy is")
            values = at_budget(grid, self.budget).mean("device")
        else:
            values = per_run(grid, variable)
            if "step" in values.dims:
                values = values.isel(step=slice(self._iterations(grid))).mean("step", skipna=False)
            elif "budget" in values.dims:
                raise ExperimentError(f"y={variable}: has a value per budget; try accuracy at one")
            elif "evaluation" in values.dims:
                values = values.isel(evaluation=self._evaluation(grid))
            elif self.iteration is not None:
                raise ExperimentError(
                    f"iteration={self.iteration}: has no effect on {variable}, which does not change"
                )
        return 100 * values if "accuracy" in variable else values

    def text(self, grid: xarray.Dataset, variable: str) -> str:
        """The moment of a variable in words."""
        if self.budget is not None:
            return f"within a transmission time of {self.budget:g}"
        if "step" in grid[variable].dims:
            return f"mean over {self._iterations(grid):,} iterations"
        if "evaluation" in grid[variable].dims:
            return f"after {self._iterations(grid):,} iterations"
        return "constant over a run"

    def _iterations(self, grid: xarray.Dataset) -> int:
        return int(grid.iteration[self._evaluation(grid)])

    def _evaluation(self, grid: xarray.Dataset) -> int:
        if self.iteration is None:
            return grid.sizes["evaluation"] - 1
        times = grid.iteration.values.tolist()
        if self.iteration not in times:
            near = min(times, key=lambda time: abs(time - self.iteration))
            raise ExperimentError(f"iteration={self.iteration}: has no evaluation; try {near}")
        return times.index(self.iteration)


def describe(experiment: Experiment, axes: Collection[str] = ()) -> str:
    """The settings in one line, without those that are swept.

    Example:
        >>> describe(Experiment(), ["r", "seed"])
        'svm on fashion_mnist, 10 devices, H = 0.4'
    """
    model, dataset = (str(getattr(experiment, name)) for name in ("model", "dataset"))
    parts = {
        "method": "" if experiment.is_default("method") else look_of("method", experiment.method).label,
        "policy": look_of("policy", experiment.policy).label if "method" in axes else "",
        "model": model if "dataset" in axes else f"{model} on {dataset}",
        "devices": f"{experiment.devices:,} devices",
        "r": f"r = {experiment.r:g}",
        "weak_fraction": f"H = {experiment.weak_fraction:g}",
    }
    if "model" in axes and "dataset" not in axes:
        parts["on"] = dataset
    if experiment.placement:
        parts["placement"] = "nested graphs"
    if "method" in axes:  # that of the first run may leave settings of others without effect
        experiment = experiment.inherit({"method": experiment.defaults()["method"]})
    if why_no_effect(experiment, "r") and "policy" not in axes:
        del parts["r"]
    return ", ".join(text for name, text in parts.items() if text and name not in axes)


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure in the format of its suffix, completely or not at all."""
    with written_whole(path) as part:
        figure.savefig(part, dpi=150, format=path.suffix.lower().lstrip(".") or "png")
    return path


def subplots(
    count: int, width: float = 5.0, height: float = 4.0, **shared: Any
) -> tuple[Figure, Sequence[Axes]]:
    """Panels side by side, with a light grid."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * count + 0.5, height), layout="constrained")
    axes = figure.subplots(1, count, squeeze=False, **shared)[0]
    for one in axes:
        one.grid(alpha=0.3)
    return figure, axes


class Band(NamedTuple):
    """A line with lower and upper bounds."""

    mean: xarray.DataArray
    low: xarray.DataArray
    high: xarray.DataArray


def draw_band(axes: Axes, x: np.ndarray, band: Interval | Band, look: Look, every: int = 0) -> None:
    """A line of means with its interval as a shaded band, and a marker at every n-th point."""
    axes.plot(
        x,
        band.mean,
        look.dashes,
        color=look.color,
        marker=look.marker,
        label=in_figure(look.label),
        markevery=every or max(1, len(x) // 10),
        markersize=5,
    )
    if not np.isnan(band.low).all():
        axes.fill_between(x, band.low, band.high, color=look.color, alpha=0.15, lw=0)


def keep_to_percent(axes: Axes) -> None:
    """Limit the y axis to 0 to 100 per cent, however wide an interval is."""
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, 0), min(high, 100))


def parts_of(data: Any, hue: str | None) -> list[tuple[Any, Any]]:
    """The values of an axis, each with its part of the data; all of it under None without that axis."""
    if hue is None or hue not in data.dims:
        return [(None, data)]
    return [(value, data.sel({hue: value})) for value in data[hue].values.tolist()]


def check_axes(values: xarray.DataArray, *axes: str | None) -> None:
    """Raise unless these are different axes of the sweep."""
    named = [axis for axis in axes if axis]
    for position, axis in enumerate(named):
        check_dimension(values, axis)
        if axis in named[:position]:
            raise ExperimentError(f"{axis}: used twice; x, rows and hue need different axes")


def over_seeds(values: xarray.DataArray, *axes: str | None) -> Interval:
    """The interval over seeds, unless they are an axis of the figure."""
    if "seed" not in axes:
        return interval(values)
    nothing = values * np.nan
    return Interval(values, nothing, nothing, values.notnull().astype(int))


def only(grid: xarray.Dataset, wanted: set[str | None]) -> xarray.Dataset:
    """Raise unless one value has been selected on every other axis of the sweep."""
    for axis in swept(grid):
        if axis in wanted:
            continue
        if grid.sizes[axis] > 1:
            values = grid[axis].values.tolist()
            raise ExperimentError(
                f"{axis}: the sweep has {values}; choose one, for example --select {axis}={values[0]}, "
                f"or select={{{axis!r}: {values[0]!r}}} in Python"
            )
        grid = grid.isel({axis: 0})
    return grid


def _legend(grid: xarray.Dataset) -> dict[str, Any]:
    seeds = grid.sizes.get("seed", 1)
    lines = [f"shade: 95% interval, {seeds} seeds"] if seeds > 1 else []
    diverged = int((grid.diverged_at >= 0).sum()) if "diverged_at" in grid else 0
    if diverged:
        runs = "1 run diverged and is" if diverged == 1 else f"{diverged:,} runs diverged and are"
        lines.append(f"{runs} left out afterwards")
    return {"title": "\n".join(lines), "title_fontsize": "small"} if lines else {}


def _scale(axes: Axes, values: np.ndarray) -> None:
    """A logarithmic axis if values differ by orders of magnitude."""
    if values.min() > 0 and values.max() / values.min() >= 20:
        axes.set_xscale("log")
