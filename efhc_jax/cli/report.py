"""`efhc report`: one page about results, to open in a browser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

Files = Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="FILE …")]


@dataclass(frozen=True)
class Report:
    """Write one self-contained page about runs, sweeps or Figure 1: it opens from disk, in any browser.

    Results that were made with --audit also show who broadcast when, which links were used, and what
    the theorem asks for.
    """

    files: Files = ()
    """NetCDF files, or folders that hold them."""
    out: Annotated[Path, tyro.conf.arg(metavar="FILE")] = Path("report.html")
    """The page to write."""

    def execute(self) -> None:
        """Read, compose, write."""
        from efhc_jax.report.escaping import printable
        from efhc_jax.report.page import write_report

        path = write_report(self.files, self.out)
        print(f"wrote {printable(str(path))} ({path.stat().st_size / 1e6:.2f} MB)")
