"""The axes of a sweep, and the settings that a selection of its runs shares."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from efhc_jax.experiment.experiment import Experiment
from efhc_jax.experiment.naming import as_stored

if TYPE_CHECKING:
    import xarray


def axes_of(stored: xarray.Dataset) -> list[str]:
    """The axes of a sweep on which no value was selected; empty for a run."""
    return [axis for axis in json.loads(stored.attrs.get("axes", "[]")) if axis in stored.dims]


def setting_of(grid: xarray.Dataset) -> Experiment:
    """The settings that all runs share, including values selected on the axes."""
    experiment = Experiment.from_json(grid.attrs["experiment"])
    fields = experiment.to_dict()
    selected = {
        name: coordinate.item()
        for name, coordinate in grid.coords.items()
        if name in fields and not coordinate.dims
    }
    return experiment.inherit(as_stored(selected))


def swept(grid: xarray.Dataset) -> list[str]:
    """The axes of a sweep."""
    own = {"evaluation", "device", "step", "budget"}
    return [str(name) for name in grid.accuracy.dims if name not in own]
