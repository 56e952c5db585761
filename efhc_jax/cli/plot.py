"""`efhc plot`: pictures of a stored run or sweep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from efhc_jax.cli.flags import OptionalFile
from efhc_jax.errors import ExperimentError
from efhc_jax.texts import printable

Word = Annotated[str | None, tyro.conf.arg(metavar="NAME")]


@dataclass(frozen=True)
class Plot:
    """Draw a stored run or sweep.

    Without --x: a variable against iterations and against transmission time. With --x AXIS: a variable
    against this axis. With --x and --rows: a heat map; with --lead POLICY, of its lead over the others.
    """

    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    """The netCDF file, or a folder with one."""
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
    """With --x: the evaluation to look at; the last by default."""
    budget: Annotated[float | None, tyro.conf.arg(metavar="TIME")] = None
    """With --x: the transmission budget to look at instead, one that was chosen before the run."""
    select: Annotated[tuple[str, ...], tyro.conf.arg(metavar="AXIS=VALUE …")] = ()
    """Bring other axes down to one value."""
    out: OptionalFile = None
    """Picture to write; PNG, PDF or SVG by its ending. Beside the file by default."""

    def execute(self) -> None:
        """Draw and write."""
        from efhc_jax.figures import save_figure
        from efhc_jax.plots import plot
        from efhc_jax.results import load, result_file

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
        print(printable(f"wrote {save_figure(figure, out)}"))


def choices(words: Sequence[str]) -> dict[str, str]:
    """The axes and values of words like `axis=value`."""
    found = {}
    for word in words:
        axis, equals, value = word.partition("=")
        if not equals:
            raise ExperimentError(f"select={word!r}: give AXIS=VALUE with an axis of the sweep")
        found[axis] = value
    return found
