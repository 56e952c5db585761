"""The grid of a sweep: all combinations of its axes, checked before anything is run."""

from __future__ import annotations

import collections
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from efhc_jax.errors import ExperimentError
from efhc_jax.experiment.axes import NOT_AXES
from efhc_jax.experiment.effects import settings_in_effect, why_no_effect
from efhc_jax.experiment.experiment import Experiment, check_names, first_values
from efhc_jax.experiment.families import FAMILIES
from efhc_jax.experiment.limits import LIMITS
from efhc_jax.text.names import known_name

_MOST_RUNS = 100_000  # of a sweep


class Grid(NamedTuple):
    """All combinations of the axes, the last axis fastest."""

    experiment: Experiment
    axes: dict[str, list[Any]]
    experiments: list[Experiment]

    @classmethod
    def of(cls, experiment: Experiment, axes: Mapping[str, Sequence[Any]], nested: bool = False) -> Grid:
        """Check the axes and create every experiment.

        Raises:
            ExperimentError: an axis is unknown or empty, or has a value twice or one out of range.
        """
        check_names(axes)
        values = {name: _check_axis(name, axis) for name, axis in axes.items()}
        if nested:
            experiment = _nested(experiment, values)
        experiment = experiment.inherit(first_values(values))
        runs = math.prod(len(axis) for axis in values.values())
        if runs > _MOST_RUNS:
            raise ExperimentError(
                f"{', '.join(values)}: more than {_MOST_RUNS:,} runs; split them into several sweeps"
            )
        combinations = itertools.product(*values.values())
        experiments = [
            experiment.inherit(dict(zip(values, combination, strict=True)))
            for combination in combinations
        ]
        axes_as_checked = {name: list(dict.fromkeys(e[name] for e in experiments)) for name in values}
        return cls(experiment, axes_as_checked, experiments)


def check_grid(grid: Grid, given: Sequence[str] = ()) -> None:
    """Raise if a given setting has no effect in any run.

    Args:
        grid: the sweep.
        given: the settings that were given in addition to its axes.

    Raises:
        ExperimentError: a setting has no effect, or two values of an axis give the same runs.
    """
    _check_axes_have_effects(grid.axes, grid.experiments)
    for name in given:
        if name in grid.axes or grid.experiment.is_default(name):
            continue
        why = [why_no_effect(experiment, name) for experiment in grid.experiments]
        if all(why):
            raise ExperimentError(f"{name}={grid.experiment[name]!r}: {why[0]}")


def _nested(experiment: Experiment, axes: Mapping[str, list[Any]]) -> Experiment:
    """The settings for which the graphs of all connectivities have the same positions."""
    if "connectivity" not in axes:
        raise ExperimentError(
            "nested: has no effect without an axis of connectivities; try connectivity=[0.3, 0.6]"
        )
    lowest = min(axes["connectivity"])
    if experiment.placement not in (0, lowest):
        raise ExperimentError(
            f"placement={experiment.placement:g}: nested graphs have positions that are connected at "
            f"{lowest:g}, the smallest connectivity; leave placement out, or nested"
        )
    return experiment.inherit({"connectivity": lowest, "placement": lowest})


def _check_axes_have_effects(axes: Mapping[str, list[Any]], experiments: list[Experiment]) -> None:
    """Raise if two values of an axis give the same runs for all values of the other axes."""
    kinds: dict[tuple[Any, ...], int] = {}  # a number for each distinct run
    numbers = [
        kinds.setdefault(tuple(settings_in_effect(experiment).items()), len(kinds))
        for experiment in experiments
    ]
    runs = np.array(numbers).reshape([len(values) for values in axes.values()])
    for axis, (name, values) in enumerate(axes.items()):
        found: dict[bytes, Any] = {}
        for value, part in zip(values, np.moveaxis(runs, axis, 0), strict=True):
            same = found.setdefault(part.tobytes(), value)
            if same is not value:
                why = why_no_effect(experiments[0], name)
                if name == "weak_fraction" and not why:
                    why = "is rounded to whole devices"
                raise ExperimentError(
                    f"{name}: {same!r} and {value!r} give the same runs" + (f"; it {why}" if why else "")
                )


def _check_axis(name: str, values: Any) -> list[Any]:
    if name in NOT_AXES:
        raise ExperimentError(f"{name}: cannot be an axis; {NOT_AXES[name]}")
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise ExperimentError(f"{name}={values!r}: an axis needs a list of values; try [{values!r}]")
    values = list(itertools.islice(values, _MOST_RUNS + 1))
    values = [value.item() if isinstance(value, np.generic) else value for value in values]
    if name in FAMILIES and not all(isinstance(value, str) for value in values):
        raise ExperimentError(
            f"{name}: an axis has names of members; give their parameters as axes of their own, "
            f"such as **{{'{name}.…': […]}}"
        )
    if name in FAMILIES:
        values = [known_name(value, FAMILIES[name].names) for value in values]
    if name in LIMITS:
        values = [LIMITS[name].check(name, value) for value in values]
    if not values:
        raise ExperimentError(f"{name}: the axis is empty; give at least one value")
    plain = [value for value in values if isinstance(value, (str, float, int))]
    twice = [value for value, count in collections.Counter(plain).items() if count > 1]
    if twice:
        raise ExperimentError(f"{name}: the axis has {twice[0]!r} twice; give each value once")
    return values
