"""A result file as plain values: its settings, headline figures and curves."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from efhc_jax.errors import DataError
from efhc_jax.experiment.effects import why_no_effect
from efhc_jax.experiment.experiment import Experiment
from efhc_jax.experiment.limits import limit_of
from efhc_jax.plotting.figures import Band, describe, over_common_cost
from efhc_jax.plotting.styles import look_of, look_of_run
from efhc_jax.report.auditor import Auditor
from efhc_jax.report.command import instructions
from efhc_jax.report.packing import numbers, some_of, stretches
from efhc_jax.report.runs import Detail, Room, run_values
from efhc_jax.report.thinning import Limits
from efhc_jax.results.activity import one_run
from efhc_jax.results.costs import cost_at_evaluations
from efhc_jax.results.selection import swept
from efhc_jax.results.statistics import Interval, interval, per_run

if TYPE_CHECKING:
    import xarray

_MOST_EVALUATIONS = 150
_FEWEST_EVALUATIONS = 10
_MOST_RATES = 120  # points of the curve of transmission times
_POINT = 120  # characters per point in all curves of a setting
_NETWORKS = (  # limits of a network that is drawn; the first that fit are used
    Limits(devices=300, links=5_000),
    Limits(devices=100, links=1_500),
    Limits(devices=30, links=300),
)
_FEWEST_FRAMES = 200  # frames per run; if they do not fit, fewer runs are shown
_SHOWN_FIRST = (
    "model",
    "dataset",
    "method",
    "policy",
    "devices",
    "split",
    "labels_per_device",
    "batch_size",
    "iterations",
    "graph",
    "connectivity",
    "dynamics",
    "r",
    "weak_fraction",
    "seed",
)

Tick = Callable[[], Any]


class Points(NamedTuple):
    """The points of the curves of a study."""

    evaluations: np.ndarray  # indices of evaluations
    rates: np.ndarray  # bounds of the groups of iterations


def study_values(
    grid: xarray.Dataset, name: str, room: int, tick: Tick = lambda: None
) -> dict[str, Any]:
    """The values of one file in the page.

    Args:
        grid: a sweep, or a run, as `efhc_jax.load` returns it.
        name: name of the file.
        room: largest number of characters.
        tick: called after each run.

    Raises:
        DataError: a value on an axis of whole numbers is not one.
    """
    grid = _whole_numbers(grid)
    experiment = Experiment.from_json(grid.attrs["experiment"])
    axes = {axis: grid[axis].values.tolist() for axis in swept(grid)}
    settings = math.prod(len(options) for axis, options in axes.items() if axis != "seed")
    most = int(np.clip(room // (2 * settings * _POINT), _FEWEST_EVALUATIONS, _MOST_EVALUATIONS))
    points = Points(
        some_of(grid.sizes["evaluation"], most), stretches(grid.sizes["step"], min(most, _MOST_RATES))
    )
    first = [*(axis for axis in ("policy", "method") if axis in axes), *axes]
    hue = next((axis for axis in first if axis != "seed"), None)
    values: dict[str, Any] = {
        "name": name,
        "title": describe(experiment, list(axes)),
        "setting": _setting(experiment, axes),
        "toml": experiment.to_toml(),
        "command": instructions(grid, experiment, axes),
        "origin": _origin(grid),
        "axes": [
            {"name": axis, "values": options, "labels": [_label(axis, option) for option in options]}
            for axis, options in axes.items()
        ],
        "hue": hue,
        "looks": _looks(experiment, axes, hue),
        "iterations": numbers(grid.iteration.values[points.evaluations]),
        "rates": numbers((points.rates[:-1] + points.rates[1:]) / 2),
        "headline": _headline(grid),
        "curves": {},
        "runs": {},
        "places": [],
        "audited": "fired" in grid and "adjacency" in grid,
        "notes": [],
    }
    others = [axis for axis in axes if axis != "seed"]
    for place in np.ndindex(*(grid.sizes[axis] for axis in others)):
        part = grid.isel(dict(zip(others, place, strict=True)))
        values["curves"][_key(place)] = _curves(part, points)
    _add_runs(values, grid, axes, points, room - len(json.dumps(values)), tick)
    _add_notes(values, grid, axes, points)
    return values


def _whole_numbers(grid: xarray.Dataset) -> xarray.Dataset:
    """The sweep with integer axes, such as seeds, as integers even if they are stored as floats.

    Raises:
        DataError: a value is not a whole number.
    """
    changed = {}
    experiment = Experiment.from_json(grid.attrs["experiment"])
    for name in swept(grid):
        limit = limit_of(experiment, name)
        if limit is None or limit.kind is not int or grid[name].dtype.kind != "f":
            continue
        values = grid[name].values
        if not np.isfinite(values).all() or (values != np.rint(values)).any():
            raise DataError(f"is damaged (its axis {name} has a value that is not a whole number)")
        changed[name] = grid[name].astype(np.int64)
    return grid.assign_coords(changed)


def _add_runs(
    values: dict[str, Any],
    grid: xarray.Dataset,
    axes: dict[str, list[Any]],
    points: Points,
    room: int,
    tick: Tick,
) -> None:
    """Add individual runs, as many as fit: all settings of a seed before the next seed."""
    places = np.ndindex(*(len(options) for options in axes.values()))
    choices = [dict(zip(axes, place, strict=True)) for place in places]
    choices.sort(key=lambda choice: choice.get("seed", 0))
    begun = grid.transmission_time.isel(step=slice(1)).count("step")
    moved = [choice for choice in choices if begun.isel(choice)]
    if not moved:
        return
    detail = Detail(values["places"], points.evaluations, Auditor(), _NETWORKS[0], {})

    def shown(choice: dict[str, int], frames: int, audited: bool) -> dict[str, Any]:
        run = one_run(grid, choice)
        return run_values(run, detail, frames, audited) | {"curves": _run_curves(run, points)}

    fewest = min(_FEWEST_FRAMES, grid.sizes["step"])
    ends = grid.degree.sum("device") + grid.bandwidth.count("device")
    largest = max(moved, key=lambda choice: float(ends.isel(choice)))
    for limits in _NETWORKS:
        detail = detail._replace(limits=limits)
        cost = Room.of(shown(largest, frames=1, audited=False))
        values["places"].clear()
        if cost.fixed + fewest * cost.thin <= room:
            break
    kept = int(np.clip(room // (cost.fixed + fewest * cost.thin), 1, len(moved)))
    frames = cost.frames(room / kept, grid.sizes["step"])
    for choice in moved[:kept]:
        place = _key(tuple(choice.values()))
        values["runs"][place] = shown(choice, frames, audited=choice.get("seed", 0) == 0)
        tick()


def _add_notes(
    values: dict[str, Any], grid: xarray.Dataset, axes: dict[str, list[Any]], points: Points
) -> None:
    """Add notes on what was left out to keep the page small."""
    notes, evaluations = values["notes"], grid.sizes["evaluation"]
    if len(points.evaluations) < evaluations:
        notes.append(f"Curves show {len(points.evaluations)} of {evaluations:,} evaluations.")
    runs = int(np.prod([len(options) for options in axes.values()]))
    if len(values["runs"]) < runs:
        notes.append(
            f"{len(values['runs']):,} of {runs:,} runs are shown individually, "
            "the others only in the headline figures and means."
        )
    parts = [run for run in values["runs"].values() if run["whole"]]
    if parts:
        notes.append(
            f"Networks are drawn in part: {_part_in_words(parts[0])}"
            f"{', and similarly for the other runs' if len(parts) > 1 else ''}. These are the devices "
            "with the fewest hops to device 0. All figures, curves and counts cover all devices."
        )
    between = [len(run["edges"]) for run in values["runs"].values() if run["use"] is None]
    if max(between, default=evaluations) < evaluations:
        notes.append(f"Broadcasts are counted between {max(between)} of {evaluations:,} evaluations.")
    lengths = [run["edges"]["length"] for run in values["runs"].values() if run["use"]]
    length = max(lengths, default=1)
    if length > 1:
        notes.append(
            f"Broadcasts and links are shown in groups of {length} iterations: "
            "brightness is the fraction of iterations in which a device broadcast, "
            "and a link is highlighted if it was used in any of them."
        )


def _part_in_words(run: dict[str, Any]) -> str:
    """Text on how much of a run's network is drawn."""
    whole = run["whole"]
    words = f"{len(run['weak']):,} of {whole['devices']:,} devices"
    if whole["links"] is None:
        return words
    return f"{words} and {len(run['links']):,} of {whole['links']:,} links"


def _setting(experiment: Experiment, axes: dict[str, list[Any]]) -> list[list[str]]:
    """The most important settings, and all others that are not defaults."""
    rows = []
    for name, value in experiment.to_dict().items():
        if name == "policy" and "method" not in axes and why_no_effect(experiment, name):
            continue
        if name in axes:
            rows.append([name, ", ".join(_label(name, option) for option in axes[name])])
        elif name in _SHOWN_FIRST or not experiment.is_default(name):
            rows.append([name, _label(name, value)])
    return rows


def _origin(grid: xarray.Dataset) -> list[list[str]]:
    versions = json.loads(grid.attrs["versions"]) | {"python": grid.attrs["python"]}
    return [
        ["created", str(grid.attrs["created"])],
        ["duration", f"{grid.attrs['seconds']:,.1f} seconds"],
        ["platform", str(grid.attrs["platform"])],
        ["versions", ", ".join(f"{name} {version}" for name, version in versions.items())],
    ]


def _looks(experiment: Experiment, axes: dict[str, list[Any]], hue: str | None) -> list[dict[str, str]]:
    """Label and style of each line, the same as in the figures."""
    looks = [look_of_run(experiment)]
    if hue:
        looks = [look_of(hue, option, position) for position, option in enumerate(axes[hue])]
    return [{"label": look.label, "color": look.color, "dashes": look.dashes} for look in looks]


def _headline(grid: xarray.Dataset) -> dict[str, Any]:
    """Headline figures: means over seeds, their intervals, and the number of seeds."""
    last = grid.isel(evaluation=-1)
    bits = {"megabits sent": grid.bits.sum("step", skipna=False) / 1e6} if "bits" in grid else {}
    columns = {
        "final accuracy (%)": 100 * per_run(last, "accuracy"),
        "worst device (%)": 100 * last.accuracy.min("device"),
        "average model (%)": 100 * last.mean_model_accuracy,
        "transmission time": grid.transmission_time.sum("step", skipna=False),
        **bits,
        "broadcasts per device per iteration": per_run(last, "broadcasts") / max(1, int(last.iteration)),
        "consensus error": last.consensus_error,
    }
    for budget in grid.budget.values.tolist() if "budget" in grid.dims else []:
        at = grid.accuracy_at_budget.sel(budget=budget).mean("device")
        columns[f"accuracy within time {budget:,.6g} (%)"] = 100 * at
    found = [[np.asarray(part) for part in interval(column)] for column in columns.values()]
    others = [axis for axis in swept(grid) if axis != "seed"]
    rows = [
        {
            "place": _key(place),
            "cells": [numbers([part[place] for part in cell]) for cell in found],
        }
        for place in np.ndindex(*(grid.sizes[axis] for axis in others))
    ]
    return {"columns": list(columns), "rows": rows, "seeds": grid.sizes.get("seed", 1)}


def _curves(part: xarray.Dataset, points: Points) -> dict[str, Any]:
    """Curves of one combination of settings: means over seeds with intervals, or its only run."""
    if part.sizes.get("seed", 1) < 2:
        return _run_curves(part.squeeze("seed") if "seed" in part.dims else part, points)
    kept = part.isel(evaluation=points.evaluations)
    time, by_time = over_common_cost(part)
    rates = interval(_rates(part.transmission_time, points))
    return {
        "accuracy": _band(interval(100 * per_run(kept, "accuracy"))),
        "by_time": _band(by_time) | {"x": numbers(time)},
        "rate": _band(rates),
        "consensus": _band(interval(kept.consensus_error)),
    }


def _run_curves(run: xarray.Dataset, points: Points) -> dict[str, Any]:
    """Curves of one run; those of accuracy have a band from the worst to the best device."""
    here = points.evaluations[points.evaluations < run.sizes["evaluation"]]
    accuracy = 100 * run.accuracy.isel(evaluation=here)
    devices = Band(accuracy.mean("device"), accuracy.min("device"), accuracy.max("device"))
    return {
        "accuracy": _band(devices),
        "by_time": _band(devices) | {"x": numbers(cost_at_evaluations(run)[here])},
        "rate": {"mean": numbers(_rates(run.transmission_time, points).values)},
        "consensus": {"mean": numbers(run.consensus_error.values[here])},
    }


def _rates(time: xarray.DataArray, points: Points) -> xarray.DataArray:
    """Means of the transmission time over groups of iterations."""
    first = points.rates[:-1][points.rates[:-1] < time.sizes["step"]]
    lengths = np.diff(np.append(first, time.sizes["step"]))
    values = time.transpose(..., "step")
    sums = np.add.reduceat(values.values.astype(float), first, axis=-1) if len(first) else values.values
    return values.isel(step=first).copy(data=sums / lengths)


def _band(found: Interval | Band) -> dict[str, Any]:
    mean, low, high = (np.asarray(part) for part in (found.mean, found.low, found.high))
    if np.isnan(low).all():
        return {"mean": numbers(mean)}
    return {"mean": numbers(mean), "low": numbers(low), "high": numbers(high)}


def _label(axis: str, value: Any) -> str:
    if axis in ("policy", "method"):
        return look_of(axis, value).label
    if isinstance(value, tuple):
        return ", ".join(f"{one:g}" for one in value) or "none"
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:,}" if isinstance(value, int) and axis == "iterations" else str(value)


def _key(place: tuple[int, ...]) -> str:
    return ",".join(map(str, place))
