"""`efhc verify`: a stored result, run again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from efhc_jax.cli.flags import OptionalFolder
from efhc_jax.texts import printable

if TYPE_CHECKING:
    from efhc_jax.verification import Difference, Verification

_MOST_LINES = 20


@dataclass(frozen=True)
class Verify:
    """Run a stored result again from its own settings, and say whether it comes out the same.

    Ends with 0 if every value has the same bits, 1 if not, 2 if it cannot be run.
    """

    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    """The netCDF file of a run or a sweep, or a folder with such files."""
    runs: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """How many runs of a sweep to do again, at least: whole batches are. All by default."""
    data_dir: OptionalFolder = None
    """Folder with the dataset's files."""

    def execute(self) -> int:
        """Run it again, compare, and print."""
        from efhc_jax.cli.startup import cpu_devices, start_jax
        from efhc_jax.config import Experiment
        from efhc_jax.data import load_dataset
        from efhc_jax.results import load, result_files
        from efhc_jax.verification import verify

        files = result_files([self.file])
        results = [load(file) for file in files]
        start_jax()
        cpu_devices(max(int(stored.attrs.get("accelerators", 1)) for stored in results))
        agree = True
        for file, stored in zip(files, results, strict=True):
            if len(files) > 1:
                print(printable(f"{file}:"), flush=True)
            data = None
            if self.data_dir is not None:
                name = Experiment.from_json(stored.attrs["experiment"]).dataset
                data = load_dataset(str(name), self.data_dir)
            found = verify(stored, data, self.runs)
            _print(found)
            agree &= found.agrees
        return 0 if agree else 1


def _print(found: Verification) -> None:
    from rich.console import Console

    console = Console()
    which = "the run" if found.of == 1 else f"{found.runs:,} of {found.of:,} runs"
    if found.agrees:
        console.print(f"agrees: {which} again, {found.values:,} values, every bit the same")
    else:
        count = len(found.differences)
        shown = f", the earliest {_MOST_LINES} of {count:,}" if count > _MOST_LINES else ""
        console.print(f"does not agree: {which} again, {found.values:,} values{shown}")
        for one in found.differences[:_MOST_LINES]:
            console.print(printable(_line(one)), highlight=False, soft_wrap=True, markup=False)
    for line in found.circumstances:
        console.print(printable(f"note: {line}"), highlight=False, soft_wrap=True, markup=False)
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
