"""Validation of the structure of a stored result when it is loaded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import xarray

_NEEDED = (
    *("accuracy", "test_loss", "mean_model_accuracy", "consensus_error", "broadcasts"),
    *("transmission_time", "train_loss", "links_used", "new_links_used", "new_link_time"),
    *("bandwidth", "degree"),
)
_TOGETHER = (  # groups of variables that are recorded together
    ("fired", "adjacency", "gradient_norm", "largest_gradient"),
    ("weights", "last_broadcast", "used_links", "sample", "fired"),
)
_MOST_ACCELERATORS = 1024
_ATTRIBUTES = ("experiment", "versions")
_JSON = {
    "axes": list,
    "versions": dict,
    "data": dict,
    "policies": dict,
    "files": dict,
    "experiment": dict,
}


def first_defect(dataset: xarray.Dataset, dimensions: Mapping[str, tuple[str, ...]]) -> str:
    """The first way in which a dataset is not a valid result, in words; empty if it is valid.

    Args:
        dataset: the dataset that was read.
        dimensions: the dimensions of every variable of a result, without the axes of a sweep.
    """
    for name, kind in _JSON.items():
        if (name in dataset.attrs or name in _ATTRIBUTES) and not _is_json(
            dataset.attrs.get(name), kind
        ):
            return f"its attribute {name} cannot be read"
    for name in ("python", "platform", "created"):
        if not isinstance(dataset.attrs.get(name), str):
            return f"its attribute {name} is not text"
    for name in ("accelerators", "begun_on"):
        count = dataset.attrs.get(name, 1)
        if not isinstance(count, (int, np.integer)) or not 0 < count <= _MOST_ACCELERATORS:
            return f"its attribute {name} is not a number of accelerators"
    for name in ("batch", "accelerators", "seconds"):
        if not isinstance(dataset.attrs.get(name, 1), (int, float, np.integer, np.floating)):
            return f"its attribute {name} is not a number"
        if not 0 <= dataset.attrs.get(name, 1) < 2**31:
            return f"its attribute {name} is out of range"
    if "seconds" not in dataset.attrs:
        return "its attribute seconds is missing"
    axes = []
    for axis in json.loads(dataset.attrs.get("axes", "[]")):
        if not isinstance(axis, str) or axis not in dataset.coords or not dataset[axis].size:
            return f"its axis {axis} has no values"
        if not dataset[axis].dims:
            continue  # one of its values was selected
        if axis not in dataset.indexes or not dataset.indexes[axis].is_unique:
            return f"its axis {axis} has a value twice"
        axes.append(axis)
    together = [name for group in _TOGETHER if group[0] in dataset for name in group]
    for name in (*_NEEDED, *together):
        if name not in dataset:
            return f"it has no {name}"
    for name, own in dimensions.items():
        if name in dataset:
            if dataset[name].dims != (*axes, *own):
                return f"{name} has the dimensions {dataset[name].dims}, not {(*axes, *own)}"
            if dataset[name].dtype.kind not in "fiub":
                return f"{name} does not hold numbers"
    diverged = dataset.get("diverged_at")
    if diverged is not None and (diverged.dims != tuple(axes) or diverged.dtype.kind not in "iu"):
        return "diverged_at is not an integer per run"
    if not dataset.sizes["evaluation"] or not dataset.sizes["device"]:
        return "it is empty"
    return _wrong_sizes(dataset) or _wrong_times(dataset)


def _wrong_sizes(dataset: xarray.Dataset) -> str:
    """A size that does not match the settings, in words; a run that diverged may be shorter."""
    settings = json.loads(dataset.attrs["experiment"])
    sizes = dataset.sizes
    devices = settings.get("devices")
    if "devices" in dataset.coords:
        devices = sizes["device"]  # those of the largest
    if sizes["device"] != devices or sizes.get("neighbor", devices) != devices:
        return f"it has {sizes['device']} devices, but its settings {devices}"
    known = np.isfinite(dataset.bandwidth.values)  # if devices are swept, smaller runs are padded
    if not (known.any(-1) if "devices" in dataset.coords else known).all():
        return "the bandwidth of a device is not known"
    iterations = settings.get("iterations")
    if not isinstance(iterations, int) or sizes["step"] > iterations:
        return f"it has {sizes['step']} iterations, but its settings {iterations}"
    if sizes.get("instant", sizes["step"] + 1) != sizes["step"] + 1:
        return "its trace is not as long as the run"
    return ""


def _wrong_times(dataset: xarray.Dataset) -> str:
    times = dataset.coords.get("iteration")
    if times is None or times.dims != ("evaluation",) or times.dtype.kind not in "iu":
        return "the iterations of its evaluations are missing"
    steps = np.asarray(times.values, np.int64)
    if len(steps) and (steps[0] < 0 or steps[-1] > dataset.sizes["step"] or (np.diff(steps) <= 0).any()):
        return "its evaluations are at impossible times"
    return ""


def _is_json(text: object, kind: type) -> bool:
    try:
        return isinstance(text, str) and isinstance(json.loads(text), kind)
    except (ValueError, RecursionError):
        return False
