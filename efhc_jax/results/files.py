"""Results of runs: labelled datasets with everything needed to repeat the run."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import importlib.metadata
import io
import json
import platform
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from efhc_jax.data import DATASETS, Dataset, load_dataset
from efhc_jax.errors import DataError, ExperimentError, first_line
from efhc_jax.experiment.experiment import Experiment
from efhc_jax.policies import POLICIES, Policy, Situation
from efhc_jax.results.history import Record
from efhc_jax.results.validity import what_is_wrong
from efhc_jax.runs.identity import file_digests
from efhc_jax.storage.files import written_whole
from efhc_jax.storage.seals import read_sealed, sealed

if TYPE_CHECKING:
    import xarray

_MOST_COMPRESSED = 1100  # largest compression ratio; that of netCDF reaches 1,032

FORMAT = 1  # version of the layout of result files; a larger number is from a newer version

DIMENSIONS = {
    "accuracy": ("evaluation", "device"),
    "test_loss": ("evaluation", "device"),
    "mean_model_accuracy": ("evaluation",),
    "consensus_error": ("evaluation",),
    "global_loss": ("evaluation",),
    "broadcasts": ("evaluation", "device"),
    "transmission_time": ("step",),
    "train_loss": ("step",),
    "links_used": ("step",),
    "new_links_used": ("step",),
    "new_link_time": ("step",),
    "gradient_norm": ("step", "device"),
    "largest_gradient": ("step", "device"),
    "accuracy_at_budget": ("budget", "device"),
    "iteration_at_budget": ("budget",),
    "bandwidth": ("device",),
    "degree": ("device",),
    "weights": ("instant", "device", "parameter"),
    "last_broadcast": ("instant", "device", "parameter"),
    "adjacency": ("step", "device", "neighbor"),
    "used_links": ("step", "device", "neighbor"),
    "fired": ("step", "device"),
    "sample": ("step", "device", "batch"),
}

_DESCRIPTIONS = {
    "accuracy": "share of the test set that each device's own model gets right",
    "test_loss": "mean loss of each device's own model on the test set",
    "mean_model_accuracy": "share of the test set that the average of all models gets right",
    "consensus_error": "distance of the models from their average, Frobenius norm over sqrt(m)",
    "global_loss": "F of the average model: mean over devices of the mean loss on their training data",
    "broadcasts": "how often each device has broadcast so far",
    "transmission_time": "mean over devices of the share of links in use times n/b",
    "train_loss": "mean over devices of the mini-batch loss, before the step",
    "links_used": "number of links that carried parameters",
    "accuracy_at_budget": "accuracy after the iteration in which the budget was reached",
    "iteration_at_budget": "iterations done when the budget was reached, or -1",
    "new_links_used": "number of links that were used for being new alone (Event 1)",
    "new_link_time": "part of the transmission time that these took",
    "gradient_norm": "2-norm of each device's gradient",
    "largest_gradient": "largest entry of each device's gradient",
    "bandwidth": "average bandwidth on a device's outgoing links",
    "degree": "number of a device's neighbours before the dynamics, or in the first graph of a trace",
    "weights": "W(k), from k = 0",
    "last_broadcast": "the models that were last broadcast, from k = 0",
    "adjacency": "physical links",
    "used_links": "links that carried parameters",
    "fired": "devices that broadcast",
    "sample": "indices into the training set",
}


def run_dataset(experiment: Experiment, record: Record) -> xarray.Dataset:
    """The labelled dataset of one run."""
    import xarray

    arrays = record.evaluations | record.steps | record.budgets
    arrays |= {"bandwidth": record.bandwidth, "degree": record.degree}
    for name in ("weights", "last_broadcast"):
        if record.initial_weights is not None:  # a trace: W(0) comes before the first step
            arrays[name] = np.concatenate([record.initial_weights[None], arrays[name]])
    variables = {
        name: xarray.Variable(DIMENSIONS[name], array, {"description": _DESCRIPTIONS[name]})
        for name, array in arrays.items()
    }
    coordinates = {
        "iteration": ("evaluation", record.iterations),
        "device": np.arange(len(record.bandwidth)),
    }
    if record.budgets:
        coordinates["budget"] = np.array(experiment.budgets)
    attrs = attributes(experiment, [record])
    return xarray.Dataset(variables, coordinates, attrs)


def sweep_dataset(
    experiment: Experiment, axes: dict[str, list[Any]], records: list[Record]
) -> xarray.Dataset:
    """The labelled dataset of a sweep: that of a run with one more dimension per axis.

    Runs that diverged, or have fewer devices than others, are padded with NaN.
    """
    import xarray

    each = [
        record.evaluations
        | record.steps
        | record.budgets
        | {"bandwidth": record.bandwidth, "degree": record.degree}
        for record in records
    ]
    lengths = tuple(len(values) for values in axes.values())
    variables = {}
    for name in each[0]:
        stacked = _stack_padded([arrays[name] for arrays in each])
        variables[name] = xarray.Variable(
            (*axes, *DIMENSIONS[name]),
            stacked.reshape(*lengths, *stacked.shape[1:]),
            {"description": _DESCRIPTIONS[name]},
        )
    variables["diverged_at"] = xarray.Variable(
        tuple(axes),
        np.array([record.diverged_at for record in records]).reshape(lengths),
        {"description": "iteration with the first model that is not finite, or -1"},
    )
    longest = max((record.iterations for record in records), key=len)
    coordinates: dict[str, Any] = {name: np.array(values) for name, values in axes.items()}
    coordinates |= {
        "iteration": ("evaluation", longest),
        "device": np.arange(max(len(record.bandwidth) for record in records)),
    }
    if records[0].budgets:
        coordinates["budget"] = np.array(experiment.budgets)
    attrs = attributes(experiment, records) | {"axes": json.dumps(list(axes))}
    return xarray.Dataset(variables, coordinates, attrs)


def _stack_padded(arrays: list[np.ndarray]) -> np.ndarray:
    """The arrays along a new first axis, padded with NaN to the shape of the largest."""
    shape = np.max([array.shape for array in arrays], axis=0)
    if all(array.shape == tuple(shape) for array in arrays):
        return np.stack(arrays)
    padded = np.full((len(arrays), *shape), np.nan, np.result_type(arrays[0], np.float32))
    for row, array in zip(padded, arrays, strict=True):
        row[tuple(slice(size) for size in array.shape)] = array
    return padded


def attributes(experiment: Experiment, records: Sequence[Record]) -> dict[str, Any]:
    """Provenance of a result: settings, versions, platform and time."""
    packages = ("efhc-jax", "jax", "jaxlib", "numpy", "flax", "optax")
    versions = {name: importlib.metadata.version(name) for name in packages}
    device = jax.devices()[0]
    return {
        "format": FORMAT,
        "experiment": experiment.to_json(),
        "versions": json.dumps(versions),
        "python": platform.python_version(),
        "platform": f"{device.platform} ({device.device_kind}) on {platform.platform()}",
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seconds": round(sum(record.seconds for record in records), 3),
        "evaluation_seconds": round(sum(record.evaluation_seconds for record in records), 3),
    }


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
    wrong = what_is_wrong(dataset, DIMENSIONS)
    if wrong:
        raise DataError(f"{path}: is damaged ({wrong})")
    return dataset


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


def policy_of(run: xarray.Dataset) -> Policy:
    """The policy of a run, as far as it determines which links are used.

    A policy that is not registered is restored from the result, without its trigger.
    """
    name = str(Experiment.from_json(run.attrs["experiment"]).policy)
    noted = json.loads(run.attrs.get("policies", "{}")).get(name)
    if noted is None:
        return POLICIES.get(name, Policy(_not_known))
    return Policy(_not_known, bool(noted["uses_new_links"]), bool(noted["coordinated"]))


def _not_known(now: Situation) -> Any:
    raise ExperimentError("policy: is not registered here")


def note_policies(result: xarray.Dataset, names: Iterable[str]) -> None:
    """Store the properties of policies that `policy_of` needs if they are not registered."""
    noted = {
        name: {
            "uses_new_links": POLICIES[name].uses_new_links,
            "coordinated": POLICIES[name].coordinated,
        }
        for name in sorted(set(names))
    }
    result.attrs["policies"] = json.dumps(noted)


def axes_of(stored: xarray.Dataset) -> list[str]:
    """The axes of a sweep on which no value was selected; empty for a run."""
    return [axis for axis in json.loads(stored.attrs.get("axes", "[]")) if axis in stored.dims]


def note_files(result: xarray.Dataset, experiments: Iterable[Experiment]) -> None:
    """Store checksums of the graph files, if there are any."""
    digests = file_digests(experiments)
    if digests:
        result.attrs["files"] = json.dumps(digests)


def data_of(result: xarray.Dataset, data: Dataset | None = None) -> Dataset:
    """The data of a result.

    Args:
        result: a run, or a sweep that is not over datasets.
        data: the data, if they cannot be loaded by name.

    Raises:
        DataError: the data are not available, or are not those of the result.
    """
    name = str(Experiment.from_json(result.attrs["experiment"]).dataset)
    noted = json.loads(result.attrs.get("data", "{}")).get(name)
    if data is None:
        if name not in DATASETS:
            raise DataError(
                f"dataset={name!r}: the data of this result (digest {noted}) are not on this machine; "
                "give them as data=…, or register them in efhc_jax.DATASETS"
            )
        data = load_dataset(name)
    if noted is not None and data.digest != noted:
        raise DataError(
            f"dataset={name!r}: these data are not those of the result (digest {data.digest}, "
            f"but {noted} there); give the same data as data=…"
        )
    return data


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
    defaults = json.loads(Experiment().to_json())
    fields = json.loads(experiment.to_json()).items()
    given = {name: value for name, value in fields if value != defaults[name]}
    digest = hashlib.sha256(json.dumps(given).encode()).hexdigest()[:8]
    return f"{experiment.policy}-{experiment.model}-{experiment.dataset}-{digest}"
