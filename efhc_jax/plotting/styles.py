"""Styles and titles, the same in all figures and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from efhc_jax.experiment.effects import why_no_effect
from efhc_jax.results.variables import VARIABLES, title_of

if TYPE_CHECKING:
    from efhc_jax.experiment.experiment import Experiment


class Look(NamedTuple):
    """Style of a line, which stays distinguishable in grayscale."""

    label: str
    color: str
    marker: str
    dashes: str


LOOKS = {
    "efhc": Look("EF-HC", "#0072B2", "o", "-"),
    "gt": Look("GT", "#E69F00", "s", "--"),
    "zt": Look("ZT", "#009E73", "^", "-."),
    "rg": Look("RG", "#CC79A7", "D", ":"),
    "local": Look("local", "#7F7F7F", "v", ":"),
    "central": Look("central", "#000000", "P", "--"),
    "adaptive": Look("adaptive", "#332288", "d", "-"),
}

METHOD_LOOKS = {
    "gossip": Look("gossip", "#0072B2", "o", "-"),
    "copies": Look("copies", "#E69F00", "s", "--"),
    "choco": Look("CHOCO-SGD", "#009E73", "^", "-."),
    "sparq": Look("SPARQ-SGD", "#CC79A7", "D", ":"),
    "tracking": Look("gradient tracking", "#7F7F7F", "v", "--"),
    "d2": Look("D²", "#000000", "P", "-."),
    "extra": Look("EXTRA", "#332288", "d", "-"),
    "qg_momentum": Look("quasi-global momentum", "#D55E00", "X", ":"),
}

NAMED: dict[str, dict[str, Look]] = {"policy": LOOKS, "method": METHOD_LOOKS}

_LOOKS_OF_VALUES = [look[1:] for look in LOOKS.values()]
_LOOKS_OF_OTHERS = [  # different from those of the package's policies and methods
    ("#56B4E9", "*", "--"),
    ("#882255", "h", "-."),
    ("#8C6D31", "p", ":"),
    ("#44AA99", "<", "-"),
    ("#AA4499", ">", "--"),
]

TITLES = {
    "iteration": "iteration",
    "time": "cumulative transmission time",
    "messages": "messages sent",
    "bits": "bits sent",
    "weak_fraction": "fraction of weak devices H",
    "connectivity": "connectivity (radius)",
    "r": "threshold scale r",
}
TITLES = {name: title_of(name) for name in VARIABLES} | TITLES


def look_of(axis: str, value: Any, position: int = 0) -> Look:
    """Style of the line for one value of an axis; that of a policy or a method is always the same."""
    named = NAMED.get(axis)
    if named and value in named:
        return named[value]
    looks = _LOOKS_OF_VALUES if named is None else _LOOKS_OF_OTHERS
    color, marker, dashes = looks[position % len(looks)]
    return Look(f"{axis} {value}" if axis and named is None else str(value), color, marker, dashes)


def look_of_run(experiment: Experiment) -> Look:
    """Style of the line of a single run: that of its policy, with methods other than gossip of both.

    Example:
        >>> from efhc_jax.experiment.experiment import Experiment
        >>> [look_of_run(Experiment(method=name)).label for name in ("gossip", "choco", "sparq")]
        ['EF-HC', 'CHOCO-SGD', 'SPARQ-SGD, EF-HC']
    """
    policy = look_of("policy", experiment.policy)
    if experiment.is_default("method"):
        return policy
    method = look_of("method", experiment.method)
    if why_no_effect(experiment, "policy"):
        return method
    return method._replace(label=f"{method.label}, {policy.label}")
