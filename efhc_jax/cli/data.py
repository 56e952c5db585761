"""`efhc data`: the available datasets, and fetching the full Fashion-MNIST."""

from __future__ import annotations

from dataclasses import dataclass

from efhc_jax.cli.flags import OptionalFolder


@dataclass(frozen=True)
class Data:
    """List the datasets on this machine, or fetch the full Fashion-MNIST."""

    fetch: bool = False
    """Download the full Fashion-MNIST with TensorFlow Datasets and keep it in the cache."""
    data_dir: OptionalFolder = None
    """Folder to take the four files from instead of downloading them."""

    def execute(self) -> None:
        """Print the table of datasets, after fetching if requested."""
        from rich.console import Console
        from rich.table import Table

        from efhc_jax.data import available_datasets, fetch
        from efhc_jax.text.printing import in_table, print_text

        console = Console()
        if self.fetch:
            with console.status("fetching Fashion-MNIST (31 MB) and checking it…"):
                kept = fetch("fashion_mnist", self.data_dir)
            print_text(f"kept in {kept}")
        table = Table("dataset", "training", "test", "found")
        table.add_column("where", overflow="fold")
        hints = []
        for entry in available_datasets():
            train, test = (f"{count:,}" for count in entry.samples)
            found = "yes" if entry.found else "no"
            where = in_table(entry.where or "not on this machine")
            table.add_row(in_table(entry.name), train, test, found, where)
            if not entry.found:
                hints.append(entry.note)
        console.print(table)
        for hint in hints:
            print_text(hint, lines=True)
