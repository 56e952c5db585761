"""Results as netCDF files: written whole, sealed, and checked when they are read."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from efhc_jax.disk.files import written_whole
from efhc_jax.disk.seals import read_sealed, sealed
from efhc_jax.errors import DataError, ExperimentError, first_line
from efhc_jax.experiment.experiment import Experiment
from efhc_jax.experiment.renamed import RENAMED
from efhc_jax.results.datasets import FORMAT
from efhc_jax.results.validity import first_defect
from efhc_jax.results.variables import DIMENSIONS
from efhc_jax.storage.code_digests import member_digests

if TYPE_CHECKING:
    import xarray

_MOST_COMPRESSED = 1100  # largest compression ratio; that of netCDF reaches 1,032


def save(dataset: xarray.Dataset, path: str | Path) -> Path:
    """Store a dataset as netCDF. The file is written completely or not at all.

    It is composed in memory, because the HDF5 library crashes on a full disk.
    """
    path = Path(path)
    compressed = {name: {"zlib": True, "complevel": 4} for name in dataset.data_vars}
    composed = io.BytesIO()
    dataset.to_netcdf(composed, engine="h5netcdf", encoding=compressed)
    with written_whole(path) as part:
        part.write_bytes(sealed(composed.getbuffer()))
    return path


def load(path: str | Path) -> xarray.Dataset:
    """A stored dataset, read into memory.

    Raises:
        DataError: the file is missing, damaged, not a result, or from a newer version.
    """
    import xarray

    path = Path(path)
    if not path.is_file():
        what = "is a folder; give a file in it" if path.is_dir() else "no such file"
        raise DataError(f"{path}: {what}")
    content = read_sealed(path)
    try:
        with (
            _quiet(),
            xarray.open_dataset(io.BytesIO(content), engine="h5netcdf", phony_dims="sort") as stored,
        ):
            _check_size(path, stored.nbytes, len(content))
            dataset = stored.load()
    except DataError:
        raise
    except Exception as error:  # the HDF5 stack raises many types
        reason = first_line(error)
        raise DataError(f"{path}: cannot be read as netCDF ({reason})") from None
    format_ = dataset.attrs.get("format")
    if not isinstance(format_, (int, np.integer)) or "experiment" not in dataset.attrs:
        raise DataError(f"{path}: was not written by efhc")
    if format_ > FORMAT:
        raise DataError(
            f"{path}: format {format_} is from a newer version of efhc-jax; upgrade to read it"
        )
    wrong = first_defect(dataset, DIMENSIONS)
    if wrong:
        raise DataError(f"{path}: is damaged ({wrong})")
    return _with_new_axes(dataset)


def _with_new_axes(dataset: xarray.Dataset) -> xarray.Dataset:
    """A result of format 1 with the present names of its axes."""
    axes = json.loads(dataset.attrs.get("axes", "[]"))
    old = {axis: RENAMED[axis] for axis in axes if axis in RENAMED}
    if not old:
        return dataset
    named = {axis: name for axis, name in old.items() if axis in dataset.variables}
    return dataset.rename(named).assign_attrs(axes=json.dumps([old.get(axis, axis) for axis in axes]))


def result_files(files: Sequence[str | Path]) -> list[Path]:
    """The files, with folders replaced by the result files in them and one level below.

    Raises:
        ExperimentError: there is no file.
        DataError: a folder has no result.
    """
    if not files:
        raise ExperimentError("FILE: give one or more netCDF files, or a folder that contains them")
    found: list[Path] = []
    for file in map(Path, files):
        if not file.is_dir():
            found.append(file)
            continue
        inside = sorted([*file.glob("[!.]*.nc"), *file.glob("[!.]*/[!.]*.nc")], key=_reading_order)
        if not inside:
            raise DataError(f"{file}: no netCDF file in this folder or one level below")
        found += inside
    return list(dict.fromkeys(found))


def result_file(file: str | Path) -> Path:
    """The file, or the only result file in a folder.

    Raises:
        DataError: a folder has none, or several.
    """
    found = result_files([file])
    if len(found) > 1:
        names = ", ".join(str(path.relative_to(file)) for path in found[:4])
        more = ", …" if len(found) > 4 else ""
        raise DataError(f"{file}: contains {len(found)} results ({names}{more}); give one of them")
    return found[0]


def _reading_order(path: Path) -> tuple[str, str]:
    """Sort key: Figure 1's curves before its connectivity, SVM before LeNet5; all others by name."""
    name = str(path).replace("lenet5-", "z-").replace("-connectivity", "-z")
    return name, str(path)


def _check_size(path: Path, declared: int, stored: int) -> None:
    """Raise if a file declares more data than it can contain, before memory is allocated."""
    if declared > _MOST_COMPRESSED * stored + 2**24:
        raise DataError(
            f"{path}: is damaged (it declares {declared / 1e9:.1f} GB, more than "
            f"{stored / 1e6:.2f} MB can contain)"
        )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress errors that the HDF5 stack prints while it cleans up."""
    before, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        yield
    finally:
        sys.unraisablehook = before


def check_holds_no_more(path: Path, *, audit: bool, trace: bool) -> None:
    """Raise if a stored run has recordings that the run that replaces it will not have.

    Raises:
        ExperimentError: it was recorded with an audit or a trace, but the new one is not.
    """
    if not path.is_file():
        return
    with contextlib.suppress(DataError):  # a damaged file is no loss
        stored = load(path)
        if "weights" in stored and not trace:
            raise ExperimentError(
                f"out={path}: contains this run with a trace, which would be lost; "
                "give --trace as well, or another --out"
            )
        if "fired" in stored and not (audit or trace):
            raise ExperimentError(
                f"out={path}: contains this run recorded for an audit, which would be lost; "
                "give --audit as well, or another --out"
            )


def file_stem(experiment: Experiment) -> str:
    """A file name for an experiment, readable and unique to its settings.

    Defaults are left out, so that it stays the same when settings are added.
    """
    settings = json.loads(experiment.to_json()).items()
    given = {name: value for name, value in settings if not experiment.is_default(name)}
    for name, code in member_digests([experiment]).items():
        given[name] = code.partition(":")[2]  # a changed member is another run
    digest = hashlib.sha256(json.dumps(given).encode()).hexdigest()[:8]
    return f"{experiment.policy}-{experiment.model}-{experiment.dataset}-{digest}"
