"""`efhc data`: which datasets are here, and fetching those that are not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Data:
    """Show which datasets are available, and fetch the full Fashion-MNIST."""

    fetch: bool = False
    """Download Fashion-MNIST with TensorFlow Datasets and keep it."""

    def execute(self) -> None:
        """Print the table, after fetching if asked."""
        raise SystemExit
