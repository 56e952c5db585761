"""Verification of a stored result: repeat it from its settings and compare bit by bit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from efhc_jax.data import Dataset
from efhc_jax.engine.sharding import hardware
from efhc_jax.errors import DataError, ExperimentError
from efhc_jax.experiment.experiment import Experiment, check_registered
from efhc_jax.experiment.families import FAMILIES, is_built_in, member_of, parameters_of
from efhc_jax.experiment.naming import as_stored
from efhc_jax.policies import POLICIES
from efhc_jax.results.datasets import attributes, data_of, run_dataset
from efhc_jax.results.selection import axes_of, setting_of
from efhc_jax.runs.grid import Grid
from efhc_jax.runs.simulation import DivergedError, simulate
from efhc_jax.runs.sweeps import repeat
from efhc_jax.storage.code_digests import code_digest
from efhc_jax.storage.identity import file_digest

if TYPE_CHECKING:
    import xarray


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
    unmatched: list[str]  # variables and coordinates in only one of the two, or of another type
    circumstances: list[str]  # changes of versions, platform or data that may be the reason

    @property
    def agrees(self) -> bool:
        """Whether all values are bitwise equal."""
        return not self.differences and not self.unmatched


def verify(
    stored: xarray.Dataset,
    data: Dataset | None = None,
    runs: int | None = None,
    *,
    graph_file: str | Path | None = None,
) -> Verification:
    """Repeat a stored run or sweep and compare all values.

    Args:
        stored: the result of `efhc_jax.load`.
        data: the dataset that it was trained on, if it is a custom one.
        runs: minimum number of runs of a sweep; all by default.
        graph_file: its graph file, if it has one; the path stored in the result is not opened
            automatically.

    Raises:
        DataError: the data are not available, or are not those of the result.
        EfhcError: it cannot be run again.
    """
    if not hasattr(stored, "attrs"):
        raise ExperimentError(f"verify: {stored!r} is not a result; give efhc.load(…) of its file")
    if runs is not None and runs < 1:
        raise ExperimentError(f"runs={runs}: give a whole number of 1 or more")
    if runs is not None and not axes_of(stored):
        raise ExperimentError(f"runs={runs}: has no effect on a single run; leave it out")
    data = _data(stored, data)
    stored = _with_graph_file(stored, graph_file)
    with jax.enable_x64(stored.train_loss.dtype == np.float64):
        return _verify(stored, data, runs)


def _verify(stored: xarray.Dataset, data: Dataset | None, runs: int | None) -> Verification:
    differences: list[Difference] = []
    unmatched: set[str] = set()
    compared, values = 0, 0
    of = int(np.prod([stored.sizes[axis] for axis in axes_of(stored)], dtype=int))
    for name, before, again in _pairs(stored, data, runs):
        compared += 1
        then = _contents(before)
        now = _contents(again) - (_LATER - then)
        unmatched |= {f"{variable} is in only one of the two" for variable in then ^ now}
        for variable in sorted(then & now):
            stored_as, now_as = before[variable].dtype, again[variable].dtype
            padded = name and stored_as.kind == "f" and now_as.kind != "f"  # as sweeps are, with NaN
            if stored_as != now_as and not padded:
                unmatched.add(f"{variable} is stored as {stored_as} and is now {now_as}")
            values += again[variable].size
            found = _first_difference(variable, name, before, again)
            if found:
                differences.append(found)
    differences.sort(key=lambda found: -1 if found.iteration is None else found.iteration)
    unmatched |= _other_attributes(stored)
    circumstances = _circumstances(stored)
    return Verification(compared, of, values, differences, sorted(unmatched), circumstances)


_LATER = {"messages", "bits", "used_links"}  # which earlier versions did not record


def _contents(run: xarray.Dataset) -> set[str]:
    """The variables of a run, and the coordinates that are not the value of an axis."""
    coordinates = {str(name) for name, values in run.coords.items() if values.dims}
    return coordinates | {str(name) for name in run.data_vars}


def _other_attributes(stored: xarray.Dataset) -> set[str]:
    """Attributes that differ from those of the repeated run."""
    found = set()
    for name, noted in json.loads(stored.attrs.get("policies", "{}")).items():
        policy = POLICIES.get(name)
        flags = {} if policy is None else {"uses_new_links": policy.uses_new_links}
        flags |= {} if policy is None else {"coordinated": policy.coordinated}
        if noted != flags:
            found.add(f"the attribute policies says {noted} of {name}, which is {flags}")
    return found | _other_members(stored)


def _other_members(stored: xarray.Dataset) -> set[str]:
    """Members that are not those of the result, in code or in defaults."""
    found = set()
    for setting, members in json.loads(stored.attrs.get("members", "{}")).items():
        for name, noted in members.items():
            member = member_of(setting, name)
            if member is None:
                continue
            code = str(noted.get("code", "")).partition(":")[2]
            if bool(code) == is_built_in(setting, name) or (code and code != code_digest(member)):
                found.add(f"the code of {setting}={name!r} is not that of the result")
            now = {own: one.default for own, one in parameters_of(setting, name).items()}
            for own in sorted(set(noted.get("parameters", {})) ^ set(now)):
                found.add(f"the parameter {setting}.{own} of {name!r} is in only one of the two")
    return found


def _data(stored: xarray.Dataset, data: Dataset | None) -> Dataset | None:
    """The data of the result; None if it has several datasets."""
    if "dataset" not in axes_of(stored):
        return data_of(stored, data)
    if data is not None:
        raise ExperimentError(
            f"data {data.name!r}: the sweep has several datasets, and no data can be given for one; "
            "select it first, stored.sel(dataset=…)"
        )
    for name in stored["dataset"].values.tolist():
        one = Experiment.from_json(stored.attrs["experiment"]).inherit(as_stored({"dataset": name}))
        data_of(stored.assign_attrs(experiment=one.to_json()))
    return None


def _with_graph_file(stored: xarray.Dataset, given: str | Path | None) -> xarray.Dataset:
    """The result with the path of its graph file replaced by the given one.

    Raises:
        ExperimentError: no file was given, or one for a result that has none or several.
        DataError: its contents are not those of the run.
    """
    experiment = setting_of(stored)
    if "graph_file" in axes_of(stored):
        raise ExperimentError("graph_file: is an axis of this sweep; select one of its values first")
    named = experiment.graph_file
    if not named:
        if given is not None:
            raise ExperimentError(f"graph_file={given}: the result was not run on a graph file")
        return stored
    noted = json.loads(stored.attrs.get("files", "{}")).get(named)
    if given is None:
        raise ExperimentError(
            f"graph_file={named!r}: the result was run on this file (digest {noted}), which is not "
            "opened automatically; give it as --graph-file, or graph_file= in Python"
        )
    if noted is not None and file_digest(str(given)) != noted:
        raise DataError(
            f"graph_file={given}: its contents are not those that the result was run on "
            f"(digest {file_digest(str(given))}, but {noted} there)"
        )
    inside = experiment.inherit({"graph_file": str(given)})
    kept = stored.drop_vars([name for name in stored.coords if name == "graph_file"])
    return kept.assign_attrs(experiment=inside.to_json())


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
        again = _again(setting_of(stored), data, trace="weights" in stored, audit=audit)
        yield "", stored.drop_vars("diverged_at", errors="ignore"), again
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
    old, new = before[variable].values, again[variable].values
    if variable in before.coords:  # a sweep has those of its longest run
        old = old[: len(new)]
    old, new = _same_shape(old, new)
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
    if "begun_on" in stored.attrs:
        begun, then_on = (hardware(int(stored.attrs[name])) for name in ("begun_on", "accelerators"))
        found.append(f"it was started on {begun} and resumed on {then_on}")
    if "data" not in stored.attrs:
        found.append("the result does not record its data")
    return found
