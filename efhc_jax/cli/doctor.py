"""`efhc doctor`: what is in order on this machine, and what is not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Doctor:
    """Check this machine: versions, accelerators, data, and a self-test of about five seconds.

    Ends with 1 if something is wrong. A note is something that may be mended and need not be.
    """

    def execute(self) -> int:
        """Look, print, and say what to do."""
        from rich.console import Console
        from rich.table import Table

        from efhc_jax.cli.startup import start_jax
        from efhc_jax.diagnosis import diagnose, verdict
        from efhc_jax.texts import in_table, printable

        start_jax()
        console = Console()
        with console.status("looking…"):
            checks = diagnose()
        colors = {"ok": "green", "note": "yellow", "problem": "red"}
        table = Table("what", "state")
        table.add_column("found", overflow="fold")
        for check in checks:
            state = f"[{colors[check.state]}]{check.state}[/]"
            table.add_row(in_table(check.name), state, in_table(check.found))
        console.print(table)
        for check in checks:
            if check.advice:
                text = printable(f"{check.name}: {check.advice}")
                console.print(text, highlight=False, soft_wrap=True, markup=False)
        console.print(verdict(checks), highlight=False)
        return 1 if any(check.state == "problem" for check in checks) else 0
