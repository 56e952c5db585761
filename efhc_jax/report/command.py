"""Instructions to repeat a result."""

from __future__ import annotations

import itertools
import json
import shlex
from typing import TYPE_CHECKING, Any

from efhc_jax.data import DATASETS
from efhc_jax.experiment.effects import DECIDING, why_no_effect
from efhc_jax.experiment.experiment import FAMILIES, Experiment, as_stored

if TYPE_CHECKING:
    import xarray


def instructions(grid: xarray.Dataset, experiment: Experiment, axes: dict[str, list[Any]]) -> str:
    """The command that repeats a result, or a sentence if there is none.

    There is no command for custom data, or for a policy or another member that is not part of the
    package.
    """
    own = _own_parts(grid, experiment, axes)
    if not own:
        record = "trace" if "weights" in grid else "audit" if "fired" in grid else ""
        return command(experiment, axes, record)
    call = "efhc_jax.sweep" if axes else "efhc_jax.simulate"
    return f"in Python, {call}(…) with the settings below and {', '.join(own)}; no command has these"


def _own_parts(grid: xarray.Dataset, experiment: Experiment, axes: dict[str, list[Any]]) -> list[str]:
    """Data and members of a result that are not part of the package, in words."""
    parts = []
    for family, members in FAMILIES.items():
        names = axes.get(family, [getattr(experiment, family)]) if family != "dataset" else []
        parts += [f"the {family} {str(name)!r}" for name in names if name not in members]
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
    usual = Experiment().to_dict()
    kind = "sweep" if axes else "run"
    words, axes, count = ["efhc", kind], dict(axes), 0
    seeds = axes.get("seed", [])
    if len(seeds) > 1 and seeds == list(range(seeds[0], seeds[0] + len(seeds))):
        experiment, count = experiment.replace(seed=seeds[0]), len(axes.pop("seed"))
    nested = bool(experiment.placement) and experiment.placement == min(axes.get("connectivity", [0]))
    for name, value in experiment.to_dict().items():
        if name in axes or value == usual[name] or (name == "placement" and nested):
            continue
        if _is_idle(name, experiment, axes):
            continue
        words += _flag(name, value if isinstance(value, tuple) else [value])
        if value is True and kind == "run":
            words.pop()  # a switch of `efhc run`, and a value of `efhc sweep`
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
