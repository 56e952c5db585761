"""Heat maps over two axes of a sweep: of a variable, or of the difference between policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from efhc_jax.errors import ExperimentError
from efhc_jax.plotting.figures import Moment, check_axes, only, over_seeds, parts_of, subplots
from efhc_jax.plotting.styles import LOOKS, TITLES, look_of
from efhc_jax.results.statistics import compare_values
from efhc_jax.text.names import known_name
from efhc_jax.text.printing import in_figure

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage


def draw_heat(
    grid: xarray.Dataset,
    x: str,
    rows: str,
    y: str,
    hue: str | None = None,
    moment: Moment | None = None,
) -> Figure:
    """A variable at one moment of the runs over two axes of the sweep, with a panel per hue.

    A cell is empty if a seed has no value at this moment.
    """
    moment = moment or Moment()
    check_axes(moment.of(grid, y), x, rows, hue)
    grid = only(grid, {x, rows, hue, "seed"})
    values = moment.of(grid, y)
    means = _whole(over_seeds(values, x, rows, hue).mean, values, {x, rows, hue})
    panels = list(parts_of(means, hue))
    figure, all_axes = subplots(len(panels), width=4.2, height=3.6, sharey=True)
    low, high = float(means.min()), float(means.max())
    for position, (axes, (value, part)) in enumerate(zip(all_axes, panels, strict=True)):
        table = part.transpose(rows, x)
        image = _draw_table(axes, table, cmap="viridis", vmin=low, vmax=high)
        for (row, column), entry in np.ndenumerate(table.values):
            dark = entry < (low + high) / 2
            text = "—" if np.isnan(entry) else f"{entry:.4g}"
            _write(axes, row, column, text, color="white" if dark else "black")
        if hue:
            axes.set_title(in_figure(look_of(hue, value, position).label))
    all_axes[0].set_ylabel(in_figure(TITLES.get(rows, rows)))
    figure.colorbar(image, ax=all_axes, label=in_figure(TITLES.get(y, y)))
    figure.suptitle(moment.text(grid, y), fontsize="medium")
    return figure


def draw_lead(
    grid: xarray.Dataset,
    leader: str,
    x: str,
    rows: str,
    y: str = "accuracy",
    moment: Moment | None = None,
) -> Figure:
    """Difference of one policy from each other one, paired by seed, over two axes of the sweep.

    Differences whose 95% interval excludes zero are bold, the others in brackets. A cell is empty if a
    seed has no value at this moment.
    """
    moment = moment or Moment()
    check_axes(moment.of(grid, y), "policy", x, rows)
    if "seed" in (x, rows):
        raise ExperimentError("seed: intervals are taken over seeds; give another axis")
    known = grid.policy.values.tolist()
    leader = known_name(leader, known)
    if leader not in known:
        raise ExperimentError(f"lead={leader}: not among the policies of the sweep, which has {known}")
    if "seed" not in grid.dims:
        raise ExperimentError("seed: differences are paired by seed; sweep over 2 or more seeds")
    grid = only(grid, {x, rows, "policy", "seed"})
    values = moment.of(grid, y)
    others = compare_values(values, "policy", leader)
    cells = {x, rows, "policy"}
    lead = _whole(0 - others.difference, values, cells, leader)
    decided = (others.low > 0) | (others.high < 0)
    panels = lead.policy.values.tolist()
    figure, all_axes = subplots(len(panels), width=4.6, height=3.8, sharey=True)
    most = float(np.nanmax(np.abs(lead), initial=0.0)) or 1.0
    for axes, policy in zip(all_axes, panels, strict=True):
        table = lead.sel(policy=policy).transpose(rows, x)
        sure = decided.sel(policy=policy).transpose(rows, x).values
        image = _draw_table(axes, table, cmap="PuOr", vmin=-most, vmax=most)
        for (row, column), entry in np.ndenumerate(table.values):
            number = f"{round(entry, 2) + 0:+.2f}" if "accuracy" in y else f"{entry:+.3g}"
            text = number if sure[row, column] else f"({number})"
            _write(
                axes,
                row,
                column,
                "—" if np.isnan(entry) else text,
                weight="bold" if sure[row, column] else "normal",
                color="white" if abs(entry) > 0.6 * most else "black",
            )
        axes.set_title(in_figure(f"{_label(leader)} − {_label(policy)}"))
    all_axes[0].set_ylabel(in_figure(TITLES.get(rows, rows)))
    unit = "percentage points" if "accuracy" in y else TITLES.get(y, y)
    figure.colorbar(image, ax=all_axes, label=in_figure(f"difference in {unit}"))
    seeds = grid.sizes["seed"]
    figure.suptitle(
        f"{moment.text(grid, y)}; {seeds} seeds, paired; bold: the 95% interval excludes 0",
        fontsize="medium",
    )
    return figure


def _whole(
    means: xarray.DataArray, values: xarray.DataArray, cells: set[Any], leader: str | None = None
) -> xarray.DataArray:
    """The means of cells in which all runs have a value; other means would favour some seeds."""
    there = values.notnull()
    there = there.all([name for name in values.dims if name not in cells])
    if leader is not None:
        there = there & there.sel(policy=leader, drop=True)
    return means.where(there)


def _draw_table(axes: Axes, table: xarray.DataArray, **colors: Any) -> AxesImage:
    """The cells of a table (row, column), with its coordinates as tick labels."""
    rows, x = (str(name) for name in table.dims)
    image = axes.imshow(table, aspect="auto", origin="lower", **colors)
    axes.set_xticks(range(len(table[x])), [in_figure(tick) for tick in table[x].values])
    axes.set_yticks(range(len(table[rows])), [in_figure(tick) for tick in table[rows].values])
    axes.set(xlabel=in_figure(TITLES.get(x, x)))
    axes.grid(False)
    return image


def _write(axes: Axes, row: int, column: int, text: str, **look: Any) -> None:
    axes.text(column, row, text, ha="center", va="center", fontsize="small", **look)


def _label(policy: str) -> str:
    return LOOKS[policy].label if policy in LOOKS else policy
