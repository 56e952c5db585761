"""`efhc audit`: the theorem's assumptions, measured on a stored run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True)
class Audit:
    """Check the assumptions of the paper's Theorem 1 on a run that was made with `efhc run --audit`."""

    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")] = Path("run.nc")
    """The netCDF file."""

    def execute(self) -> None:
        """Print a table of findings."""
        from rich.console import Console
        from rich.table import Table

        from efhc_jax.audits import audit
        from efhc_jax.results import load

        findings = audit(load(self.file))
        table = Table("what the theorem asks for", "verdict", "measured", show_lines=True)
        colors = {"holds": "green", "does not hold": "red"}
        for finding in findings:
            color = colors.get(finding.verdict, "yellow")
            table.add_row(finding.name, f"[{color}]{finding.verdict}[/]", finding.figure)
        Console().print(table)
