"""`efhc report`: results as a page for the browser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from efhc_jax.text.printing import print_text

Files = Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="FILE …")]


@dataclass(frozen=True)
class Report:
    """Write a self-contained HTML page about runs, sweeps or Figure 1, which opens from disk.

    For results recorded with --audit it also shows which devices broadcast in each iteration, which
    links were used, and the theorem's assumptions.
    """

    files: Files = ()
    """Result files (netCDF), or folders that contain them."""
    out: Annotated[Path, tyro.conf.arg(metavar="FILE")] = Path("report.html")
    """HTML file to write."""

    def execute(self) -> None:
        """Read the results and write the page."""
        from efhc_jax.report.page import write_report

        path = write_report(self.files, self.out)
        print_text(f"wrote {path} ({path.stat().st_size / 1e6:.2f} MB)")
