"""Verification of a stored result: repeat it from its settings and compare bit by bit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from efhc_jax.config import FAMILIES, Experiment, as_stored, check_registered
from efhc_jax.data import Dataset
from efhc_jax.errors import DataError, ExperimentError
from efhc_jax.figures import setting_of
from efhc_jax.layout import hardware
from efhc_jax.results import DIMENSIONS, attributes, data_of, run_dataset
from efhc_jax.simulation import DivergedError, simulate
from efhc_jax.sweeps import Grid, repeat

if TYPE_CHECKING:
    import xarray

KNOWN = {*DIMENSIONS, "diverged_at"}


class Difference(NamedTuple):
    """The first difference in a variable of a run."""

    variable: str
    run: str  # the run of a sweep; empty for a single run
    iteration: int | None  # iterations done; None if the variable has no time axis
    device: int | None
    stored: float
    again: float
    entries: int  # number of values that differ in this run
    largest: float  # largest difference


class Verification(NamedTuple):
    """The outcome of repeating a result."""

    runs: int
    of: int
    values: int  # number of values that were compared
    differences: list[Difference]  # earliest first
    circumstances: list[str]  # changes of versions, platform or data that may be the reason

    @property
    def agrees(self) -> bool:
        """Whether all values are bitwise equal."""
        return not self.differences


def verify(stored: xarray.Dataset, data: Dataset | None = None, runs: int | None = None) -> Verification:
    """Repeat a stored run or sweep and compare all values.

    Args:
        stored: the result of `efhc_jax.load`.
        data: the dataset that it was trained on, if it is a custom one.
        runs: minimum number of runs of a sweep; all by default.

    Raises:
        DataError: the data are not available, or are not those of the result.
        EfhcError: it cannot be run again.
    """
    if runs is not None and runs < 1:
        raise ExperimentError(f"runs={runs}: give a whole number of 1 or more")
    data = _data(stored, data)
    with jax.enable_x64(stored.train_loss.dtype == np.float64):
        return _verify(stored, data, runs)


def _verify(stored: xarray.Dataset, data: Dataset | None, runs: int | None) -> Verification:
    differences: list[Difference] = []
    unmatched: set[str] = set()
    compared, values = 0, 0
    of = int(np.prod([stored.sizes[axis] for axis in axes_of(stored)], dtype=int))
    for name, before, again in _pairs(stored, data, runs):
        compared += 1
        then = {str(variable) for variable in before.data_vars if variable in KNOWN}
        now = {str(variable) for variable in again.data_vars}
        unmatched |= then ^ now
        for variable in sorted(then & now):
            values += again[variable].size
            found = _first_difference(variable, name, before, again)
            if found:
                differences.append(found)
    differences.sort(key=lambda found: -1 if found.iteration is None else found.iteration)
    circumstances = _circumstances(stored)
    circumstances += [f"{variable} is in only one of the two" for variable in sorted(unmatched)]
    return Verification(compared, of, values, differences, circumstances)


def _data(stored: xarray.Dataset, data: Dataset | None) -> Dataset | None:
    """The data of the result; None if it has several datasets."""
    if "dataset" not in axes_of(stored):
        return data_of(stored, data)
    for name in stored["dataset"].values.tolist():
        one = Experiment.from_json(stored.attrs["experiment"]).inherit(as_stored({"dataset": name}))
        data_of(stored.assign_attrs(experiment=one.to_json()))
    return None


def axes_of(stored: xarray.Dataset) -> list[str]:
    """The axes of a sweep on which no value was selected; empty for a run."""
    return [axis for axis in json.loads(stored.attrs.get("axes", "[]")) if axis in stored.dims]


def grid_of(stored: xarray.Dataset) -> Grid:
    """The sweep that was stored."""
    axes = {axis: stored[axis].values.tolist() for axis in axes_of(stored)}
    setting = setting_of(stored)
    for family in set(FAMILIES) & set(axes):
        for name in axes[family]:
            check_registered(setting.inherit(as_stored({family: name})))
    return Grid.of(setting, axes)


def _pairs(
    stored: xarray.Dataset, data: Dataset | None, runs: int | None
) -> Iterator[tuple[str, xarray.Dataset, xarray.Dataset]]:
    """The name of each run, its stored values and the new ones."""
    audit = "fired" in stored
    axes = axes_of(stored)
    if not axes:
        yield "", stored, _again(setting_of(stored), data, trace="weights" in stored, audit=audit)
        return
    grid = grid_of(stored)
    shape = [stored.sizes[axis] for axis in axes]
    batch: int | None = int(stored.attrs.get("batch", 0))
    if not batch or batch % jax.device_count():  # not recorded, or not possible here
        batch = None
    for place, record in repeat(grid, data, batch, audit, runs):
        at = {axis: int(i) for axis, i in zip(axes, np.unravel_index(place, shape), strict=True)}
        before = stored.isel(at)
        name = ", ".join(f"{axis} {before[axis].item()}" for axis in axes)
        again = run_dataset(grid.experiments[place], record)
        again["diverged_at"] = ((), record.diverged_at)
        yield name, before, again


def _again(experiment: Experiment, data: Dataset | None, *, trace: bool, audit: bool) -> xarray.Dataset:
    try:
        return simulate(experiment, data, trace=trace, audit=audit)
    except DivergedError as error:  # as before, or else the values differ
        return error.result


def _first_difference(
    variable: str, run: str, before: xarray.Dataset, again: xarray.Dataset
) -> Difference | None:
    dimensions = again[variable].dims
    if before[variable].dims != dimensions:
        raise DataError(f"{variable}: has the dimensions {before[variable].dims}, not {dimensions}")
    old, new = _same_shape(before[variable].values, again[variable].values)
    different = ~_equal(old, new)
    if not different.any():
        return None
    place = tuple(int(i) for i in np.argwhere(different)[0])  # time comes first in all variables
    at = dict(zip(dimensions, place, strict=True))
    with np.errstate(invalid="ignore"):
        apart = np.abs(old.astype(np.float64) - new.astype(np.float64))[different]
    return Difference(
        variable,
        run,
        _iteration(at, before, again),
        at.get("device"),
        float(old[place]),
        float(new[place]),
        int(different.sum()),
        float("nan") if np.isnan(apart).all() else float(np.nanmax(apart)),
    )


def _iteration(at: dict[Any, int], before: xarray.Dataset, again: xarray.Dataset) -> int | None:
    if "step" in at:
        return at["step"] + 1
    if "evaluation" in at:
        longer = max(before.iteration.values, again.iteration.values, key=len)
        return int(longer[at["evaluation"]])
    return at.get("instant")


def _same_shape(old: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both padded with NaN to a common shape, because one of two runs may have diverged earlier."""
    if old.shape == new.shape:
        return old, new
    shape = np.maximum(old.shape, new.shape)
    padded = []
    for array in (old, new):
        padded.append(np.full(shape, np.nan))
        padded[-1][tuple(slice(size) for size in array.shape)] = array
    return padded[0], padded[1]


def _equal(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Whether entries are bitwise equal, with all NaN equal."""
    both_nan = np.isnan(old) & np.isnan(new)
    return both_nan | ((old == new) & (np.signbit(old) == np.signbit(new)))


def _circumstances(stored: xarray.Dataset) -> list[str]:
    """Differences in versions, platform and data since the result was stored."""
    experiment = Experiment.from_json(stored.attrs["experiment"])
    now = attributes(experiment, [])
    found = []
    then, here = json.loads(stored.attrs.get("versions", "{}")), json.loads(now["versions"])
    then["python"], here["python"] = stored.attrs.get("python"), now["python"]
    then["platform"], here["platform"] = stored.attrs.get("platform"), now["platform"]
    if "accelerators" in stored.attrs:
        platform = str(then["platform"]).split(" ")[0]
        then["hardware"] = hardware(int(stored.attrs["accelerators"]), platform)
        here["hardware"] = hardware(jax.device_count())
    for name in here:
        if then.get(name) != here[name]:
            found.append(f"{name} was {then.get(name, 'not recorded')} and is now {here[name]}")
    if "data" not in stored.attrs:
        found.append("the result does not record its data")
    return found
