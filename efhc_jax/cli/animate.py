"""`efhc animate`: an animation of the network of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from efhc_jax.cli.flags import OptionalFile
from efhc_jax.text.printing import print_text


@dataclass(frozen=True)
class Animate:
    """Draw the network of a run over time as a GIF, from a result recorded with --audit."""

    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    """Result file (netCDF), or a folder that contains one."""
    select: Annotated[tuple[str, ...], tyro.conf.arg(metavar="AXIS=VALUE …")] = ()
    """Run of a sweep to show."""
    frames: int = 120
    """Number of frames, spread evenly over the iterations."""
    out: OptionalFile = None
    """GIF file to write; by default next to the result file."""

    def execute(self) -> None:
        """Draw the animation and write it."""
        from efhc_jax.cli.plot import choices
        from efhc_jax.plotting.animation import animate
        from efhc_jax.plotting.figures import only
        from efhc_jax.plotting.plots import selected
        from efhc_jax.results.activity import one_run
        from efhc_jax.storage.netcdf import load, result_file

        file = result_file(self.file)
        grid = load(file)
        for axis, value in choices(self.select).items():
            grid = selected(grid, axis, value)
        run = one_run(only(grid, set()), {})
        out = animate(run, self.out or file.with_suffix(".gif"), self.frames)
        print_text(f"wrote {out}")
