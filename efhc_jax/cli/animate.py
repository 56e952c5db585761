"""`efhc animate`: a run as a moving picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from efhc_jax.cli.flags import OptionalFile
from efhc_jax.texts import printable


@dataclass(frozen=True)
class Animate:
    """Draw the network of a run over time as a GIF, from a file that was made with --audit."""

    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    """The netCDF file."""
    select: Annotated[tuple[str, ...], tyro.conf.arg(metavar="AXIS=VALUE …")] = ()
    """The run to show, where the file holds a sweep."""
    frames: int = 120
    """How many pictures, spread evenly over the iterations."""
    out: OptionalFile = None
    """GIF to write. Beside the file by default."""

    def execute(self) -> None:
        """Draw and write."""
        from efhc_jax.activity import one_run
        from efhc_jax.animation import animate
        from efhc_jax.cli.plot import choices
        from efhc_jax.figures import only
        from efhc_jax.plots import selected
        from efhc_jax.results import load, result_file

        file = result_file(self.file)
        grid = load(file)
        for axis, value in choices(self.select).items():
            grid = selected(grid, axis, value)
        run = one_run(only(grid, set()), {})
        out = animate(run, self.out or file.with_suffix(".gif"), self.frames)
        print(printable(f"wrote {out}"))
