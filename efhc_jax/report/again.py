"""The command that gives a result again."""

from __future__ import annotations

import shlex
from typing import Any

from efhc_jax.config import Experiment


def command(experiment: Experiment, axes: dict[str, list[Any]], audit: bool) -> str:
    """The `efhc run` or `efhc sweep` that gives the result, with the settings that are not the default.

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
