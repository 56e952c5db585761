"""The paper's Figure 1: four panels per classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from efhc_jax.papers.efhc.settings import COMPARED
from efhc_jax.plotting.figures import draw_band, keep_to_percent, over_common_cost
from efhc_jax.plotting.styles import LOOKS
from efhc_jax.results.statistics import Interval, at_budget, interval, per_run

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NAMES = {"svm": "SVM", "lenet5": "LeNet5"}
_SMOOTHED = 100  # iterations over which panel i averages


def draw_figure1(parts: dict[str, dict[str, xarray.Dataset]]) -> Figure:
    """Draw the figure, with the parts that there are.

    Args:
        parts: by classifier, the sweeps "curves" (panels i to iii) and "connectivity" (panel iv).
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(16, 3.9 * len(parts) + 0.5), layout="constrained")
    rows = figure.subplots(len(parts), 4, squeeze=False)
    for row, (classifier, studies) in zip(rows, parts.items(), strict=True):
        for panel, axes in zip(("i", "ii", "iii", "iv"), row, strict=True):
            axes.grid(alpha=0.3)
            axes.set_title(f"{_NAMES[classifier]} ({panel})", loc="left", fontsize="medium")
        if "curves" in studies:
            _draw_curves(row, studies["curves"])
        if "connectivity" in studies:
            _draw_connectivity(row[3], studies["connectivity"])
        for axes in row:
            if not axes.lines:
                axes.text(0.5, 0.5, "not run", ha="center", transform=axes.transAxes, color="gray")
    handles, labels = next(axes for axes in rows.flat if axes.lines).get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    figure.supxlabel(_caption(parts), fontsize="small")
    return figure


def _draw_curves(row: Any, grid: xarray.Dataset) -> None:
    by_iteration, accuracy, by_time = row[:3]
    for policy in COMPARED:
        part, look = grid.sel(policy=policy), LOOKS[policy]
        spent = _averaged(part.transmission_time)
        draw_band(by_iteration, spent.step.values, interval(spent), look)
        draw_band(accuracy, part.iteration.values, interval(100 * per_run(part, "accuracy")), look)
        draw_band(by_time, *over_common_cost(part), look)
    by_iteration.set(xlabel="iteration", ylabel="transmission time per iteration", ylim=(0, None))
    accuracy.set(xlabel="iteration", ylabel="accuracy (%)")
    by_time.set(xlabel="cumulative transmission time", ylabel="accuracy (%)")
    by_time.locator_params(axis="x", nbins=5)  # long numbers
    for axes in (accuracy, by_time):
        keep_to_percent(axes)
    for axes in (by_iteration, accuracy, by_time):
        axes.set_xlim(left=0)


def _draw_connectivity(axes: Axes, grid: xarray.Dataset) -> None:
    budget = float(grid.budget[0])
    accuracy = 100 * at_budget(grid, budget).mean("device")
    for policy in COMPARED:
        band: Interval = interval(accuracy.sel(policy=policy))
        draw_band(axes, accuracy.connectivity.values, band, LOOKS[policy], every=1)
    missing = int(accuracy.isnull().sum())
    if missing:
        note = f"{missing} of {accuracy.size} runs did not reach it and are left out"
        axes.set_title(note, loc="right", fontsize="x-small")
    axes.set(xlabel="connectivity (radius)", ylabel=f"accuracy within time {budget:,.0f} (%)")
    axes.set_xticks(accuracy.connectivity.values)
    keep_to_percent(axes)


def _averaged(time: xarray.DataArray) -> xarray.DataArray:
    """Means over intervals of iterations, at their centres."""
    length = max(1, min(_SMOOTHED, time.sizes["step"] // 15))
    means = time.coarsen(step=length, boundary="trim").mean()
    return means.assign_coords(step=(np.arange(means.sizes["step"]) + 0.5) * length)


def _caption(parts: dict[str, dict[str, xarray.Dataset]]) -> str:
    seeds = ", ".join(
        f"{_NAMES[name]} {next(iter(studies.values())).sizes['seed']}" for name, studies in parts.items()
    )
    return (
        "Lines: means over seeds, all policies paired within a seed. Shades: 95 % Student intervals of "
        f"these means. Seeds: {seeds}."
    )
