"""`efhc bench`: benchmarks."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from efhc_jax.cli.flags import Folder
from efhc_jax.disk.files import output_folder, written_whole
from efhc_jax.errors import ExperimentError
from efhc_jax.text.printing import print_text

if TYPE_CHECKING:
    from rich.console import Console

SUITES = ("peers", "scaling", "methods", "startup", "accelerators")


@dataclass(frozen=True)
class Bench:
    """Measure the speed against PyTorch, NumPy and the limits of the machine, and for growing sizes.

    It needs a checkout of the project and an otherwise idle machine. The suite accelerators compiles for
    GPUs and TPUs that need not be there, counts what they would do, and measures if there is one.
    """

    suite: Literal["all", "peers", "scaling", "methods", "startup", "accelerators"] = "all"
    """peers: other implementations (needs PyTorch); scaling: larger problems; methods: each method,
    compressor and optimizer against gossip; startup: time to start; accelerators: the programs of GPUs
    and TPUs (needs `scripts/compilers`)."""
    out: Folder = Path("out/bench")
    """Folder for the results: a JSON, Markdown and PNG file per suite."""
    quick: bool = False
    """Run a small version of each suite in a few minutes, as a test; its numbers are not meaningful."""

    def execute(self) -> None:
        """Run the suites, then print, store and plot the results."""
        import importlib
        import importlib.util

        from rich.console import Console

        use_checkout()
        wanted = SUITES if self.suite == "all" else (self.suite,)
        if "peers" in wanted and not importlib.util.find_spec("torch"):
            raise ExperimentError(
                'suite=peers: needs PyTorch; install the extra, pip install -e ".[bench]", '
                "or choose another suite"
            )
        console = Console()
        with output_folder(self.out):
            for name in wanted:
                suite = importlib.import_module(f"benchmarks.suites.{name}")
                self._finish(suite.run(self.quick, lambda line: print(line, flush=True)), console)

    def _finish(self, report: dict[str, Any], console: Console) -> None:
        import json

        from benchmarks.pictures import draw
        from benchmarks.report import as_markdown, as_table, sheets
        from efhc_jax.plotting.figures import save_figure

        for sheet in sheets(report):
            console.print(as_table(sheet))
        stem = self.out / report["suite"]
        texts = {".json": json.dumps(report, indent=1, allow_nan=False), ".md": as_markdown(report)}
        written = []
        for ending, text in texts.items():
            with written_whole(stem.with_suffix(ending)) as part:
                part.write_text(text, encoding="utf-8")
            written.append(stem.with_suffix(ending))
        written.append(save_figure(draw(report), stem.with_suffix(".png")))
        for path in written:
            print_text(f"wrote {path}")


def use_checkout() -> None:
    """Make `benchmarks` importable from the checkout that contains this package.

    Raises:
        ExperimentError: the package was installed without the rest of the project.
    """
    checkout = Path(__file__).parents[2]
    if not (checkout / "benchmarks" / "suites").is_dir():
        raise ExperimentError(
            "bench: the benchmarks are not part of the installed package; clone the project and "
            'install it from there, pip install -e ".[bench]"'
        )
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))
