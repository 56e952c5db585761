"""`efhc plot`: figures of a stored run or sweep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from efhc_jax.cli.flags import OptionalFile
from efhc_jax.errors import ExperimentError
from efhc_jax.text.printing import print_text

Word = Annotated[str | None, tyro.conf.arg(metavar="NAME")]


@dataclass(frozen=True)
class Plot:
    """Plot a stored run or sweep.

    Without --x: a variable against iterations and against transmission time. With --x COST, which is
    iteration, time, messages or bits: against what had been spent. With --x AXIS: a variable against
    this axis of the sweep. With --x and --rows: a heat map; with --lead POLICY, a heat map of its
    difference from the other policies.
    """

    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    """Result file (netCDF), or a folder that contains one."""
    x: Word = None
    """Axis of the sweep, or cost (iteration, time, messages or bits), for the x axis."""
    y: str = "accuracy"
    """Variable to plot."""
    hue: Word = None
    """Axis of the sweep with a line or a panel per value; by default policy or method."""
    rows: Word = None
    """Axis of the sweep for the rows of a heat map."""
    lead: Word = None
    """Policy whose difference from each other policy, paired by seed, is drawn as a heat map."""
    iteration: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """With --x: iteration of the evaluation to plot; the last by default."""
    budget: Annotated[float | None, tyro.conf.arg(metavar="TIME")] = None
    """With --x: transmission budget to plot instead of an evaluation; one that the runs had."""
    select: Annotated[tuple[str, ...], tyro.conf.arg(metavar="AXIS=VALUE …")] = ()
    """Value to select on each of the other axes."""
    out: OptionalFile = None
    """Figure to write: .png, .pdf or .svg; by default next to the result file."""

    def execute(self) -> None:
        """Draw the figure and write it."""
        from efhc_jax.plotting.figures import save_figure
        from efhc_jax.plotting.plots import plot
        from efhc_jax.storage.netcdf import load, result_file

        file = result_file(self.file)
        out = self.out or file.with_suffix(".png")
        if out.suffix.lower() not in (".png", ".pdf", ".svg"):
            raise ExperimentError(f"out={out}: give a file ending in .png, .pdf or .svg")
        figure = plot(
            load(file),
            x=self.x,
            y=self.y,
            hue=self.hue,
            rows=self.rows,
            lead=self.lead,
            iteration=self.iteration,
            budget=self.budget,
            select=choices(self.select),
        )
        print_text(f"wrote {save_figure(figure, out)}")


def choices(words: Sequence[str]) -> dict[str, str]:
    """The axes and values in words of the form `axis=value`."""
    found = {}
    for word in words:
        axis, equals, value = word.partition("=")
        if not equals:
            raise ExperimentError(f"select={word!r}: give AXIS=VALUE with an axis of the sweep")
        found[axis] = value
    return found
