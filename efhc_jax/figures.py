"""Pictures of results. Each policy has one colour and one marker, everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from efhc_jax.analysis import Interval, at_budget, check_dimension, interval, per_run
from efhc_jax.config import Experiment
from efhc_jax.errors import ExperimentError
from efhc_jax.files import written_whole
from efhc_jax.theory import Finding

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Look(NamedTuple):
    """How a line is drawn: told apart by colour, by marker, and in grey."""

    label: str
    color: str
    marker: str
    dashes: str


LOOKS = {
    "efhc": Look("EF-HC", "#0072B2", "o", "-"),
    "gt": Look("GT", "#E69F00", "s", "--"),
    "zt": Look("ZT", "#009E73", "^", "-."),
    "rg": Look("RG", "#CC79A7", "D", ":"),
    "local": Look("local", "#7F7F7F", "v", ":"),
    "central": Look("central", "#000000", "P", "--"),
}

_OTHER_LOOKS = [look[1:] for look in LOOKS.values()]

TITLES = {
    "accuracy": "test accuracy, mean over devices (%)",
    "mean_model_accuracy": "test accuracy of the average model (%)",
    "test_loss": "test loss, mean over devices",
    "consensus_error": "consensus error",
    "train_loss": "training loss",
    "transmission_time": "transmission time of an iteration",
    "iteration": "iteration",
    "time": "cumulative transmission time",
    "heterogeneity": "heterogeneity H",
    "connectivity": "connectivity (radius)",
    "r": "threshold scale r",
}


def look_of(axis: str, value: Any, position: int) -> Look:
    """How one value of an axis is drawn; policies always look the same."""
    if axis == "policy" and value in LOOKS:
        return LOOKS[value]
    color, marker, dashes = _OTHER_LOOKS[position % len(_OTHER_LOOKS)]
    return Look(f"{axis} {value}" if axis else str(value), color, marker, dashes)


def draw_run(run: xarray.Dataset) -> Figure:
    """Accuracy of one run against iterations and transmission time, from worst to best device."""
    experiment = Experiment.from_json(run.attrs["experiment"])
    figure, (by_iteration, by_time) = subplots(2, sharey=True)
    look = look_of("policy", experiment.policy, 0)
    accuracy = 100 * run.accuracy
    devices = Interval(accuracy.mean("device"), accuracy.min("device"), accuracy.max("device"))
    for axes, x in ((by_iteration, run.iteration.values), (by_time, time_at_evaluations(run))):
        draw_band(axes, x, devices, look)
        axes.set_xlim(left=0)
    by_iteration.set(xlabel=TITLES["iteration"], ylabel=TITLES["accuracy"])
    by_time.set(xlabel=TITLES["time"])
    by_iteration.legend(title="line: mean; shade: worst to best device", title_fontsize="small")
    figure.suptitle(describe(experiment))
    return figure


def draw_curves(grid: xarray.Dataset, hue: str = "policy") -> Figure:
    """Accuracy of a sweep against iterations and against transmission time, a line for each hue."""
    if hue != "policy":
        check_dimension(grid.accuracy, hue)
    grid = only(grid, {hue, "seed"})
    setting = setting_of(grid)
    figure, (by_iteration, by_time) = subplots(2, sharey=True)
    for position, (value, part) in enumerate(parts_of(grid, hue)):
        look = look_of(hue, value or setting.policy, position)
        accuracy = 100 * per_run(part, "accuracy")
        draw_band(by_iteration, part.iteration.values, interval(accuracy), look)
        draw_band(by_time, *accuracy_by_time(part), look)
    for axes in (by_iteration, by_time):
        axes.set_xlim(left=0)
    by_iteration.set(xlabel=TITLES["iteration"], ylabel=TITLES["accuracy"])
    by_time.set(xlabel=TITLES["time"])
    keep_to_percent(by_iteration)
    by_iteration.legend(**_legend(grid))
    figure.suptitle(describe(setting))
    return figure


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
        look = look_of(hue or "", value, position)
        draw_band(axes, np.asarray(part[x].values), over_seeds(part, x, hue), look, every=1)
    axes.set(xlabel=TITLES.get(x, x), ylabel=TITLES.get(y, y))
    if "accuracy" in y:
        keep_to_percent(axes)
    if np.issubdtype(values[x].dtype, np.number):
        _scale(axes, values[x].values)
        axes.set_xticks(values[x].values, [f"{value:g}" for value in values[x].values])
        axes.minorticks_off()
    if hue:
        axes.legend(**_legend(grid))
    axes.set_title(moment.text(grid), fontsize="medium")
    return figure


def draw_convergence(findings: Sequence[Finding], title: str) -> Figure:
    """What the theorem says goes to 0, each with its fitted decay, on logarithmic axes."""
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
    figure.suptitle(title)
    return figure


class Moment(NamedTuple):
    """The point of a run to look at: an evaluation, or the iteration that reached a budget."""

    iteration: int | None = None  # the last by default
    budget: float | None = None

    def of(self, grid: xarray.Dataset, variable: str) -> xarray.DataArray:
        """The variable at this moment, averaged over devices; shares in per cent."""
        if self.budget is not None:
            if variable != "accuracy":
                raise ExperimentError(f"y={variable}: only the accuracy is taken at a budget")
            values = at_budget(grid, self.budget).mean("device")
        else:
            values = per_run(grid, variable)
            if "step" in values.dims:
                values = values.mean("step", skipna=False)
            elif "budget" in values.dims:
                raise ExperimentError(f"y={variable}: has a value for each budget; try accuracy at one")
            elif "evaluation" in values.dims:
                values = values.isel(evaluation=self._evaluation(grid))
        return 100 * values if "accuracy" in variable else values

    def text(self, grid: xarray.Dataset) -> str:
        """The moment in words."""
        if self.budget is not None:
            return f"within a transmission time of {self.budget:g}"
        return f"after {int(grid.iteration[self._evaluation(grid)]):,} iterations"

    def _evaluation(self, grid: xarray.Dataset) -> int:
        if self.iteration is None:
            return grid.sizes["evaluation"] - 1
        times = grid.iteration.values.tolist()
        if self.iteration not in times:
            near = min(times, key=lambda time: abs(time - self.iteration))
            raise ExperimentError(f"iteration={self.iteration}: not evaluated then; try {near}")
        return times.index(self.iteration)


def accuracy_by_time(part: xarray.Dataset, points: int = 60) -> tuple[np.ndarray, Interval]:
    """Accuracy (%) of several seeds at common transmission times, between their evaluations."""
    import xarray

    runs = part if "seed" in part.dims else part.expand_dims("seed")
    times = [time_at_evaluations(runs.isel(seed=seed)) for seed in range(runs.sizes["seed"])]
    common = np.linspace(0, min(np.nanmax(time) for time in times), points)
    accuracy = 100 * per_run(runs, "accuracy").transpose("seed", "evaluation").values
    rows = [np.interp(common, time, row) for time, row in zip(times, accuracy, strict=True)]
    return common, interval(xarray.DataArray(rows, dims=("seed", "time")))


def time_at_evaluations(run: xarray.Dataset) -> np.ndarray:
    """Cumulative transmission time at each evaluation, summed in 64 bits."""
    total = np.concatenate([[0.0], np.cumsum(run.transmission_time.values, dtype=np.float64)])
    return total[run.iteration.values]


def setting_of(grid: xarray.Dataset) -> Experiment:
    """The settings that all runs share, with those that were selected from the axes."""
    experiment = Experiment.from_json(grid.attrs["experiment"])
    fields = experiment.to_dict()
    selected = {
        name: coordinate.item()
        for name, coordinate in grid.coords.items()
        if name in fields and not coordinate.dims
    }
    return experiment.replace(**selected)


def describe(experiment: Experiment) -> str:
    """The setting in a line."""
    return (
        f"{experiment.model} on {experiment.dataset}, {experiment.devices} devices, "
        f"r = {experiment.r:g}, H = {experiment.heterogeneity:g}"
    )


def save_figure(figure: Figure, path: Path) -> Path:
    """Store a figure in the format of its ending, in full or not at all."""
    with written_whole(path) as part:
        figure.savefig(part, dpi=150)
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


def draw_band(axes: Axes, x: np.ndarray, band: Interval, look: Look, every: int = 0) -> None:
    """A line of means with its interval as a shade, and a marker at every n-th point."""
    axes.plot(
        x,
        band.mean,
        look.dashes,
        color=look.color,
        marker=look.marker,
        label=look.label,
        markevery=every or max(1, len(x) // 10),
        markersize=5,
    )
    if not np.isnan(band.low).all():
        axes.fill_between(x, band.low, band.high, color=look.color, alpha=0.15, lw=0)


def keep_to_percent(axes: Axes) -> None:
    """Show no accuracy that cannot be, however wide an interval is."""
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, 0), min(high, 100))


def parts_of(data: Any, hue: str | None) -> list[tuple[Any, Any]]:
    """The data for each value of an axis, with the value."""
    if hue is None or hue not in data.dims:
        return [("", data)]
    return [(value, data.sel({hue: value})) for value in data[hue].values.tolist()]


def check_axes(values: xarray.DataArray, *axes: str | None) -> None:
    """Raise unless these are different axes of the sweep."""
    named = [axis for axis in axes if axis]
    for position, axis in enumerate(named):
        check_dimension(values, axis)
        if axis in named[:position]:
            raise ExperimentError(f"{axis}: used twice; x, rows and hue need different axes")


def over_seeds(values: xarray.DataArray, *axes: str | None) -> Interval:
    """The interval over seeds, unless they are drawn one by one."""
    if "seed" not in axes:
        return interval(values)
    nothing = values * np.nan
    return Interval(values, nothing, nothing)


def only(grid: xarray.Dataset, wanted: set[str | None]) -> xarray.Dataset:
    """Raise unless every other axis of the sweep has been brought down to one value."""
    for axis in swept(grid):
        if axis in wanted:
            continue
        if grid.sizes[axis] > 1:
            values = grid[axis].values.tolist()
            raise ExperimentError(
                f"{axis}: the sweep has {values}; choose one, for example --select {axis}={values[0]}"
            )
        grid = grid.isel({axis: 0})
    return grid


def swept(grid: xarray.Dataset) -> list[str]:
    """The axes of a sweep."""
    own = {"evaluation", "device", "step", "budget"}
    return [str(name) for name in grid.accuracy.dims if name not in own]


def _legend(grid: xarray.Dataset) -> dict[str, Any]:
    seeds = grid.sizes.get("seed", 1)
    if seeds < 2:
        return {}
    return {"title": f"shade: 95% interval, {seeds} seeds", "title_fontsize": "small"}


def _scale(axes: Axes, values: np.ndarray) -> None:
    """A logarithmic axis where values spread over orders of magnitude."""
    if values.min() > 0 and values.max() / values.min() >= 20:
        axes.set_xscale("log")
