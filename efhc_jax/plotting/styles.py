"""Styles and titles, the same in all figures and reports."""

from __future__ import annotations

from typing import Any, NamedTuple

from efhc_jax.results.variables import VARIABLES, title_of


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

_LOOKS_OF_VALUES = [look[1:] for look in LOOKS.values()]
_LOOKS_OF_OTHER_POLICIES = [  # different from those of the package's policies
    ("#D55E00", "X", "-"),
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


def look_of(axis: str, value: Any, position: int) -> Look:
    """Style of the line for one value of an axis; that of a policy is always the same."""
    if axis == "policy" and value in LOOKS:
        return LOOKS[value]
    looks = _LOOKS_OF_OTHER_POLICIES if axis == "policy" else _LOOKS_OF_VALUES
    color, marker, dashes = looks[position % len(looks)]
    return Look(f"{axis} {value}" if axis not in ("", "policy") else str(value), color, marker, dashes)
