"""`efhc plot`: pictures of a stored run or sweep."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from efhc_jax.cli.flags import OptionalFile
from efhc_jax.errors import ExperimentError

if TYPE_CHECKING:
    import xarray

Word = Annotated[str | None, tyro.conf.arg(metavar="NAME")]


@dataclass(frozen=True)
class Plot:
    """Draw a stored run or sweep.

    Without --x: accuracy against iterations and against transmission time. With --x AXIS: a variable
    against this axis. With --x and --rows: a heat map; with --lead POLICY, of its lead over the others.
    """

    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    """The netCDF file."""
    x: Word = None
    """Axis of the sweep along the bottom."""
    y: str = "accuracy"
    """Variable to draw."""
    hue: Word = None
    """Axis with a line or a panel for each value; policy if there is one."""
    rows: Word = None
    """Axis along the side, for a heat map."""
    lead: Word = None
    """Policy whose difference from each other one is drawn, paired by seed, as a heat map."""
    iteration: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """Evaluation to look at; the last by default."""
    budget: Annotated[float | None, tyro.conf.arg(metavar="TIME")] = None
    """Transmission budget to look at instead, one that was chosen before the run."""
    select: Annotated[tuple[str, ...], tyro.conf.arg(metavar="AXIS=VALUE …")] = ()
    """Bring other axes down to one value."""
    out: OptionalFile = None
    """Picture to write; PNG, PDF or SVG by its ending. Beside the file by default."""

    def execute(self) -> None:
        """Draw and write."""
        from efhc_jax.figures import save_figure, swept
        from efhc_jax.results import load

        grid = load(self.file)
        for choice in self.select:
            grid = selected(grid, choice)
        out = self.out or self.file.with_suffix(".png")
        if out.suffix.lower() not in (".png", ".pdf", ".svg"):
            raise ExperimentError(f"out={out}: give a file ending in .png, .pdf or .svg")
        figure = self._draw(grid, swept(grid))
        print(f"wrote {save_figure(figure, out)}")

    def _draw(self, grid: xarray.Dataset, axes: list[str]) -> Any:
        from efhc_jax import figures, heat_maps

        moment = figures.Moment(self.iteration, self.budget)
        used = {self.x, self.rows}
        hue = self.hue or ("policy" if "policy" in axes and "policy" not in used else None)
        if self.x is None:
            if self.rows is not None or self.lead is not None:
                raise ExperimentError("rows, lead: a heat map needs --x and --rows")
            return figures.draw_curves(grid, hue or "policy") if axes else figures.draw_run(grid)
        if self.rows is not None and self.lead is not None:
            return heat_maps.draw_lead(grid, self.lead, self.x, self.rows, self.y, moment)
        if self.rows is not None:
            return heat_maps.draw_heat(grid, self.x, self.rows, self.y, hue, moment)
        if self.lead is not None:
            raise ExperimentError(f"lead={self.lead}: is drawn as a heat map, which needs --rows too")
        return figures.draw_lines(grid, self.x, self.y, hue, moment)


def selected(grid: xarray.Dataset, choice: str) -> xarray.Dataset:
    """The part of a sweep where an axis has the value of `axis=value`."""
    axis, equals, text = choice.partition("=")
    if not equals or axis not in grid.dims or axis not in grid.coords:
        raise ExperimentError(f"select={choice!r}: give AXIS=VALUE with an axis of the sweep")
    for value in grid[axis].values.tolist():
        if str(value) == text or (not isinstance(value, str) and _number(text) == value):
            return grid.sel({axis: value})
    raise ExperimentError(f"select={choice!r}: the sweep has {grid[axis].values.tolist()}")


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
