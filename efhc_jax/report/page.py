"""The page about result files, as one self-contained HTML file."""

from __future__ import annotations

import html
import importlib.resources
import json
import math
import string
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from efhc_jax.disk.files import written_whole
from efhc_jax.errors import DataError, EfhcError, ExperimentError, first_line
from efhc_jax.report.claims import claims_of, figure_folder
from efhc_jax.report.escaping import plain
from efhc_jax.report.studies import Tick, study_values
from efhc_jax.results.selection import swept
from efhc_jax.runs.progress import item_progress
from efhc_jax.storage.netcdf import load, result_files
from efhc_jax.text.printing import printable

if TYPE_CHECKING:
    import xarray

_ROOM = 2_500_000  # characters for the values of all files
_SCRIPTS = ("base.js", "charts.js", "activity.js", "page.js")


def write_report(files: Sequence[str | Path], out: str | Path, progress: bool | None = None) -> Path:
    """Write one self-contained page about results.

    Args:
        files: netCDF files of runs or sweeps, or folders that contain them, such as that of Figure 1.
        out: the HTML file to write.
        progress: show a progress bar; by default on a terminal and in a notebook.

    Returns:
        The path of the page.

    Raises:
        ExperimentError: there is no file, or `out` does not end in .html.
        DataError: a file cannot be read.
    """
    out = Path(out)
    if out.suffix.lower() not in (".html", ".htm"):
        raise ExperimentError(f"out={out}: give a file ending in .html")
    paths = result_files(files)
    grids = [load(path) for path in paths]
    runs = sum(_runs(grid) for grid in grids)
    room = _ROOM // len(grids)
    with item_progress(runs, "report", progress) as tick:
        studies = [_study(path, grid, room, tick) for path, grid in zip(paths, grids, strict=True)]
    title = studies[0]["title"] if len(studies) == 1 else f"{len(studies)} results"
    claims = claims_of(paths)
    if claims and all(map(figure_folder, paths)):
        title = "Figure 1: EF-HC and its baselines"
    with written_whole(out) as part:
        part.write_text(page(title, {"claims": claims, "studies": studies}), encoding="utf-8")
    return out


def _study(path: Path, grid: xarray.Dataset, room: int, tick: Tick) -> dict[str, Any]:
    """The values of a file; errors name the file."""
    try:
        return study_values(grid, _short(path), room, tick)
    except EfhcError as error:
        raise DataError(f"{path}: {error}") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise DataError(
            f"{path}: is damaged ({type(error).__name__}: {first_line(error, 'without a reason')})"
        ) from error


def page(title: str, values: dict[str, Any]) -> str:
    """The page as text; values are escaped so that they cannot close the script element."""
    embedded = json.dumps(plain(values), separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        embedded = embedded.replace(character, f"\\u{ord(character):04x}")
    return string.Template(_text("template.html")).substitute(
        title=html.escape(printable(title)),
        style=_text("report.css"),
        script="\n".join(map(_text, _SCRIPTS)),
        values=embedded,
    )


def _text(name: str) -> str:
    return importlib.resources.files("efhc_jax.report").joinpath(name).read_text(encoding="utf-8")


def _runs(grid: xarray.Dataset) -> int:
    return math.prod(grid.sizes[axis] for axis in swept(grid))


def _short(path: Path) -> str:
    return str(Path(*path.parts[-2:]))
