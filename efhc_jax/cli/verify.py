"""`efhc verify`: repeat a stored result and compare."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from efhc_jax.cli.flags import MemberFiles, OptionalFile, OptionalFolder
from efhc_jax.text.printing import print_text

if TYPE_CHECKING:
    from efhc_jax.runs.verification import Difference, Verification

_MOST_LINES = 20


@dataclass(frozen=True)
class Verify:
    """Repeat a stored run or sweep from its settings and compare the results.

    Exits with code 0 if every value is bitwise equal, 1 if not, and 2 if the file cannot be run.
    """

    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    """Result file (netCDF) of a run or sweep, or a folder with such files."""
    runs: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """Minimum number of runs of a sweep to repeat, in whole batches; all by default."""
    graph_file: OptionalFile = None
    """Graph file of the result; the path stored in the result is not opened automatically."""
    data_dir: OptionalFolder = None
    """Folder with the files of the dataset."""
    members: MemberFiles = ()
    """Python files that register the members of your own that the result was made with."""

    def execute(self) -> int:
        """Repeat the runs, compare, and print."""
        from efhc_jax.cli.startup import cpu_devices, start_jax
        from efhc_jax.data import load_dataset
        from efhc_jax.experiment.experiment import Experiment
        from efhc_jax.results.selection import axes_of
        from efhc_jax.runs.verification import verify
        from efhc_jax.storage.netcdf import load, result_files

        files = result_files([self.file])
        results = [load(file) for file in files]
        start_jax()
        cpu_devices(max(int(stored.attrs.get("accelerators", 1)) for stored in results))
        agree = True
        for file, stored in zip(files, results, strict=True):
            if len(files) > 1:
                print_text(f"{file}:")
            data = None
            if self.data_dir is not None:
                name = Experiment.from_json(stored.attrs["experiment"]).dataset
                data = load_dataset(str(name), self.data_dir)
            runs = self.runs if axes_of(stored) or not any(map(axes_of, results)) else None
            found = verify(stored, data, runs, graph_file=self.graph_file)
            _print(found)
            agree &= found.agrees
        return 0 if agree else 1


def _print(found: Verification) -> None:
    from rich.console import Console

    console = Console()
    which = "the run" if found.of == 1 else f"{found.runs:,} of {found.of:,} runs"
    if found.agrees:
        console.print(f"agrees: {which}, {found.values:,} values, all bitwise equal")
    else:
        count = len(found.differences)
        shown = f", the earliest {_MOST_LINES} of {count:,}" if count > _MOST_LINES else ""
        console.print(f"does not agree: {which}, {found.values:,} values{shown}")
        for line in [*found.unmatched, *map(_line, found.differences[:_MOST_LINES])]:
            print_text(line)
    for line in found.circumstances:
        print_text(f"note: {line}")
    if not found.agrees and not found.circumstances:
        console.print("note: versions, platform and data are those of the file")


def _line(one: Difference) -> str:
    run = f" of {one.run}" if one.run else ""
    first = "" if one.iteration is None else f" at iteration {one.iteration:,}"
    device = "" if one.device is None else f", device {one.device}"
    return (
        f"{one.variable}{run}: first{first}{device}: {one.stored:.9g} is now {one.again:.9g}; "
        f"{one.entries:,} values differ, by {one.largest:.3g} at most"
    )
