"""Results of runs: labelled datasets with everything needed to repeat the run."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import platform
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from efhc_jax.data import DATASETS, Dataset, load_dataset
from efhc_jax.errors import DataError, ExperimentError
from efhc_jax.experiment.experiment import Experiment
from efhc_jax.policies import POLICIES, Policy, Situation
from efhc_jax.results.history import Record
from efhc_jax.results.variables import VARIABLES

if TYPE_CHECKING:
    import xarray


FORMAT = 2  # version of the layout of result files; a larger number is from a newer version


def run_dataset(experiment: Experiment, record: Record) -> xarray.Dataset:
    """The labelled dataset of one run."""
    import xarray

    arrays = record.evaluations | record.steps | record.budgets
    arrays |= {"bandwidth": record.bandwidth, "degree": record.degree}
    for name in ("weights", "last_broadcast"):
        if record.initial_weights is not None:  # a trace: W(0) comes before the first step
            arrays[name] = np.concatenate([record.initial_weights[None], arrays[name]])
    variables = {
        name: xarray.Variable(VARIABLES[name].dimensions, array, _attributes_of(name))
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
            (*axes, *VARIABLES[name].dimensions),
            stacked.reshape(*lengths, *stacked.shape[1:]),
            _attributes_of(name),
        )
    variables["diverged_at"] = xarray.Variable(
        tuple(axes),
        np.array([record.diverged_at for record in records]).reshape(lengths),
        _attributes_of("diverged_at"),
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


def _attributes_of(name: str) -> dict[str, str]:
    return {"description": VARIABLES[name].description, "units": VARIABLES[name].unit}


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
