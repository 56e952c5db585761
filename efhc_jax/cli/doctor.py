"""`efhc doctor`: a check of the installation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Doctor:
    """Check the installation: versions, accelerators, data, and a self-test of about five seconds.

    Exits with code 1 if there is a problem. Notes are optional improvements.
    """

    def execute(self) -> int:
        """Run the checks and print their results with advice."""
        from rich.console import Console
        from rich.table import Table

        from efhc_jax.cli.startup import start_jax
        from efhc_jax.runs.diagnosis import diagnose, verdict
        from efhc_jax.text.printing import in_table, print_text

        start_jax()
        console = Console()
        with console.status("checking…"):
            checks = diagnose()
        colors = {"ok": "green", "note": "yellow", "problem": "red"}
        table = Table("check", "state")
        table.add_column("found", overflow="fold")
        for check in checks:
            state = f"[{colors[check.state]}]{check.state}[/]"
            table.add_row(in_table(check.name), state, in_table(check.found))
        console.print(table)
        for check in checks:
            if check.advice:
                print_text(f"{check.name}: {check.advice}", lines=True)
        console.print(verdict(checks), highlight=False)
        return 1 if any(check.state == "problem" for check in checks) else 0
