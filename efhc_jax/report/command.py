"""Instructions to repeat a result."""

from __future__ import annotations

import itertools
import json
import shlex
from typing import TYPE_CHECKING, Any

from efhc_jax.data import DATASETS
from efhc_jax.experiment.effects import DECIDING, why_no_effect
from efhc_jax.experiment.experiment import Experiment
from efhc_jax.experiment.families import FAMILIES, is_built_in
from efhc_jax.experiment.naming import as_stored

if TYPE_CHECKING:
    import xarray


def instructions(grid: xarray.Dataset, experiment: Experiment, axes: dict[str, list[Any]]) -> str:
    """The command that repeats a result, or a sentence if there is none.

    There is no command for custom data. A policy or another member that is not part of the package is
    registered by a file, whose name the result does not know.
    """
    members, data = _own_members(grid, experiment, axes), _own_data(grid)
    if data:
        call = "efhc_jax.sweep" if axes else "efhc_jax.simulate"
        own = ", ".join(members + data)
        return f"in Python, {call}(…) with the settings below and {own}; no command has these"
    record = "trace" if "weights" in grid else "audit" if "fired" in grid else ""
    line = command(experiment, axes, record)
    if members:
        return f"{line} --members FILE, where FILE registers {', '.join(members)}"
    return line


def _own_members(grid: xarray.Dataset, experiment: Experiment, axes: dict[str, list[Any]]) -> list[str]:
    """Members of a result that are not part of the package, in words."""
    parts, noted = [], json.loads(grid.attrs.get("members", "{}"))
    for setting in FAMILIES:
        for name in axes.get(setting, [experiment[setting]]) if setting != "dataset" else []:
            registered_by_user = "code" in noted.get(setting, {}).get(str(name), {})
            if registered_by_user or not is_built_in(setting, name):
                parts.append(f"the {setting} {str(name)!r}")
    return parts


def _own_data(grid: xarray.Dataset) -> list[str]:
    """Data of a result that are not part of the package, in words."""
    parts = []
    for name, digest in json.loads(grid.attrs.get("data", "{}")).items():
        registered = DATASETS[name].digest if name in DATASETS else None
        if registered is None or registered not in ("", digest):
            parts.append(f"the data {name!r} (digest {digest})")
    return parts


def command(experiment: Experiment, axes: dict[str, list[Any]], record: str = "") -> str:
    """The `efhc run` or `efhc sweep` command of a result.

    It has the settings that are not defaults and have an effect in a run.

    Args:
        experiment: the settings that all runs share.
        axes: the axes of a sweep.
        record: what was recorded of every iteration: "audit", "trace" or nothing.

    Example:
        >>> command(Experiment(r=5, seed=3), {"policy": ["efhc", "zt"], "seed": [3, 4]}, "audit")
        'efhc sweep --r 5.0 --seed 3 --policy efhc zt --seeds 2 --audit'
    """
    kind = "sweep" if axes else "run"
    words, axes, count = ["efhc", kind], dict(axes), 0
    seeds = axes.get("seed", [])
    if len(seeds) > 1 and seeds == list(range(seeds[0], seeds[0] + len(seeds))):
        experiment, count = experiment.replace(seed=seeds[0]), len(axes.pop("seed"))
    nested = bool(experiment.placement) and experiment.placement == min(axes.get("connectivity", [0]))
    for name, value in experiment.to_dict().items():
        if name in axes or experiment.is_default(name) or (name == "placement" and nested):
            continue
        if _is_idle(name, experiment, axes):
            continue
        if isinstance(value, bool) and kind == "run":  # a switch; a value of `efhc sweep`
            words += _flag(name if value else f"no_{name}", [])
        else:
            words += _flag(name, value if isinstance(value, tuple) else [value])
    for name, values in axes.items():
        words += _flag(name, values)
    if count:
        words += ["--seeds", str(count)]
    return shlex.join(words + ["--nested"] * nested + [f"--{record}"] * bool(record))


def _is_idle(name: str, experiment: Experiment, axes: dict[str, list[Any]]) -> bool:
    """Whether a setting has no effect, whatever the axes."""
    deciding = {axis: values for axis, values in axes.items() if axis in DECIDING}
    runs = (dict(zip(deciding, run, strict=True)) for run in itertools.product(*deciding.values()))
    return all(why_no_effect(experiment.inherit(as_stored(run)), name) for run in runs)


def _flag(name: str, values: Any) -> list[str]:
    return [f"--{name.replace('_', '-')}", *map(str, values)]
