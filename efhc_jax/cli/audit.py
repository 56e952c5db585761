"""`efhc audit`: the theorem's assumptions and claims, checked on a stored run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from efhc_jax.cli.flags import MemberFiles, OptionalFile, OptionalFolder
from efhc_jax.errors import ExperimentError


@dataclass(frozen=True)
class Audit:
    """Check the paper's Theorem 1 and its assumptions on a run recorded with `efhc run --audit`."""

    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    """Result file (netCDF), or a folder that contains one."""
    out: OptionalFile = None
    """Figure of the consensus error and of F(w̄) − F* to write: .png, .pdf or .svg."""
    data_dir: OptionalFolder = None
    """Folder with the files of the dataset."""
    members: MemberFiles = ()
    """Python files that register the members of your own that the result was made with."""

    def execute(self) -> None:
        """Print a table of findings."""
        from rich.console import Console
        from rich.table import Table

        from efhc_jax.cli.startup import start_jax
        from efhc_jax.data import load_dataset
        from efhc_jax.experiment.experiment import Experiment
        from efhc_jax.plotting.figures import describe, draw_convergence, save_figure
        from efhc_jax.storage.netcdf import load, result_file
        from efhc_jax.text.printing import in_table, print_text
        from efhc_jax.theory.audits import audit, step_size_in_words

        if self.out is not None and self.out.suffix.lower() not in (".png", ".pdf", ".svg"):
            raise ExperimentError(f"out={self.out}: give a file ending in .png, .pdf or .svg")
        start_jax()
        run = load(result_file(self.file))
        experiment = Experiment.from_json(run.attrs["experiment"])
        data = load_dataset(str(experiment.dataset), self.data_dir) if self.data_dir else None
        with Console(stderr=True).status("checking the run and computing the optimum…"):
            findings = audit(run, data)
        table = Table("assumption or claim", "verdict", "measured", show_lines=True)
        colors = {"holds": "green", "does not hold": "red"}
        for finding in findings:
            color = colors.get(finding.verdict, "yellow")
            table.add_row(
                in_table(finding.name), f"[{color}]{finding.verdict}[/]", in_table(finding.figure)
            )
        Console().print(table)
        if self.out is not None:
            title = f"{describe(experiment)}, α = {step_size_in_words(experiment)}"
            figure = draw_convergence(findings, title)
            print_text(f"wrote {save_figure(figure, self.out)}")
