"""Accuracy against each cost, a line per contender."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from efhc_jax.comparison.contenders import BASELINE, CONTENDERS
from efhc_jax.comparison.costs import COSTS, spent
from efhc_jax.comparison.study import Choices, Study
from efhc_jax.plotting.figures import draw_band, keep_to_percent, subplots
from efhc_jax.plotting.styles import LOOKS, Look
from efhc_jax.results.statistics import interval, per_run

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

_POINTS = 60
_COLORS = ("#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#882255", "#332288")
_MARKERS = ("s", "^", "D", "v", "X", "P")
_DASHES = ("--", "-.", ":")


def draw_comparison(
    study: Study, chosen: Choices, runs: dict[tuple[str, int], xarray.Dataset]
) -> Figure:
    """A panel per criterion, with the candidates that were tuned for it."""
    figure, panels = subplots(len(study.criteria), width=4.6, height=5.6, sharey=True)
    for place, (criterion, axes) in enumerate(zip(study.criteria, panels, strict=True)):
        for position, name in enumerate(study.contenders):
            one = chosen[name][place]
            if one is None:
                continue
            found = runs[one.contender, one.number]
            at, values = _over_cost(found, criterion.cost)
            draw_band(axes, at, interval(values), _look(name, position))
        axes.axvline(criterion.budget, color="gray", lw=1, zorder=0)
        unit = "" if criterion.cost == "gradients" else " (rounds)"
        axes.set(xscale="log", xlabel=f"{COSTS[criterion.cost]}{unit}")
        axes.set_title(f"tuned for {criterion.text}", fontsize="medium")
    panels[0].set(ylabel="test accuracy, mean over devices (%)")
    keep_to_percent(panels[0])
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize="small")
    figure.suptitle(
        f"{study.model} on {study.data.name}; mean over {study.size.seeds} seeds, 95 % intervals; "
        "vertical line: the budget of the comparison",
        fontsize="medium",
    )
    return figure


def _over_cost(runs: xarray.Dataset, cost: str) -> tuple[np.ndarray, xarray.DataArray]:
    """Accuracies of several seeds at common costs, which end where the first seed ends."""
    import xarray

    each = [runs.isel(seed=place) for place in range(runs.sizes["seed"])]
    costs = [spent(run, cost) for run in each]
    last = np.nanmin([one[-1] for one in costs])
    first = np.nanmax([one[1] for one in costs])
    at = np.geomspace(min(first, last), last, _POINTS)
    rows = [
        np.interp(at, one, 100 * per_run(run, "accuracy").values)
        for run, one in zip(each, costs, strict=True)
    ]
    return at, xarray.DataArray(rows, dims=("seed", "cost"))


def _look(name: str, position: int) -> Look:
    label = CONTENDERS[name].label
    if name == BASELINE:
        return LOOKS["efhc"]._replace(label=label)
    return Look(
        label,
        _COLORS[position % len(_COLORS)],
        _MARKERS[position % len(_MARKERS)],
        _DASHES[position % len(_DASHES)],
    )
