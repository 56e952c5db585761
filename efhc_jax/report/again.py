"""Instructions to repeat a result."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from efhc_jax.config import FAMILIES, Experiment
from efhc_jax.data import DATASETS

if TYPE_CHECKING:
    import xarray


def again(grid: xarray.Dataset, experiment: Experiment, axes: dict[str, list[Any]]) -> str:
    """The command that repeats a result, or a sentence if there is none.

    There is no command for custom data, or for a policy or another member that is not part of the
    package.
    """
    own = _own_parts(grid, experiment, axes)
    if not own:
        return command(experiment, axes, audit="fired" in grid)
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


def command(experiment: Experiment, axes: dict[str, list[Any]], audit: bool) -> str:
    """The `efhc run` or `efhc sweep` command of a result, with the settings that are not defaults.

    Example:
        >>> command(Experiment(r=5, seed=3), {"policy": ["efhc", "zt"], "seed": [3, 4]}, audit=True)
        'efhc sweep --r 5.0 --seed 3 --policy efhc zt --seeds 2 --audit'
    """
    usual = Experiment().to_dict()
    kind = "sweep" if axes else "run"
    words, axes, count = ["efhc", kind], dict(axes), 0
    seeds = axes.get("seed", [])
    if len(seeds) > 1 and seeds == list(range(seeds[0], seeds[0] + len(seeds))):
        experiment, count = experiment.replace(seed=seeds[0]), len(axes.pop("seed"))
    for name, value in experiment.to_dict().items():
        if name in axes or value == usual[name]:
            continue
        words += _flag(name, value if isinstance(value, tuple) else [value])
        if value is True and kind == "run":
            words.pop()  # a switch of `efhc run`, and a value of `efhc sweep`
    for name, values in axes.items():
        words += _flag(name, values)
    if count:
        words += ["--seeds", str(count)]
    return shlex.join(words + ["--audit"] * audit)


def _flag(name: str, values: Any) -> list[str]:
    return [f"--{name.replace('_', '-')}", *map(str, values)]
