"""Common mistakes on the command line: flags of other tools, several values for a run, commas.

They are recognised before the arguments are parsed, and the error says what to type instead.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
from typing import NamedTuple

from efhc_jax.cli.run import Run
from efhc_jax.cli.sweep import Sweep
from efhc_jax.config import Experiment
from efhc_jax.errors import ExperimentError
from efhc_jax.names import ALIASES, meant_field

SETTINGS = {field.name: str(field.type) for field in dataclasses.fields(Experiment)}
# Numbers that cannot be an axis of a sweep, so that a comma in one separates thousands.
NEVER_SEVERAL = ("iterations", "eval_every", "early_evaluations", "placement")


class Group(NamedTuple):
    """A flag and its values, up to the next flag."""

    flag: str  # as typed; empty for words before the first flag
    values: list[str]

    @property
    def name(self) -> str:
        """The field that the flag would set."""
        return self.flag.removeprefix("--").replace("-", "_")

    @property
    def parts(self) -> list[str]:
        """The values, also if they are separated by commas or in brackets."""
        pieces = (part for value in self.values for part in value.strip("[]()").split(","))
        return [part.strip(" '\"") for part in pieces if part.strip()]


def check_words(words: list[str]) -> None:
    """Raise with what to type, if it is clear what was meant.

    Args:
        words: the command line, starting with the command.

    Raises:
        ExperimentError: the flags are those of another tool or command, or have too many values.
    """
    if not words or words[0] not in ("run", "sweep") or {"-h", "--help"} & set(words):
        return
    groups = grouped(words[1:])
    for group in groups[1:]:
        if group.name not in flags_of(words[0]):
            _check_flag(words[0], group, groups)
        elif group.name in SETTINGS and group.name != "graph_file":
            _check_values(words[0], group, groups)


def grouped(words: list[str]) -> list[Group]:
    """The words grouped by flag; the first group has those before any flag.

    Example:
        >>> [tuple(group) for group in grouped(["--policy", "efhc", "gt", "--r=5"])]
        [('', []), ('--policy', ['efhc', 'gt']), ('--r', ['5'])]
    """
    groups = [Group("", [])]
    for word in words:
        if re.match(r"--?(?!inf|nan)[a-z]", word, re.IGNORECASE):
            flag, equals, value = word.partition("=")
            groups.append(Group(flag, [value] if equals else []))
        else:
            groups[-1].values.append(word)
    return groups


def flags_of(command: str) -> set[str]:
    """The names of all flags of `efhc run` or `efhc sweep`."""
    own = {field.name for field in dataclasses.fields(Run if command == "run" else Sweep)}
    return own - {"experiment", "settings"} | set(SETTINGS)


def _check_flag(command: str, group: Group, groups: list[Group]) -> None:
    if command == "run" and group.name in flags_of("sweep") and group.name not in ALIASES:
        raise ExperimentError(
            f"{group.flag}: is a flag of efhc sweep, and efhc run makes one run; try: {as_sweep(groups)}"
        )
    if known := meant_field(group.name, flags_of(command)):
        raise ExperimentError(f"{group.flag}: no such flag; use --{known.replace('_', '-')}")


def _check_values(command: str, group: Group, groups: list[Group]) -> None:
    name, parts = group.name, group.parts
    shown = f"{name}={' '.join(group.values)}"
    commas = any("," in value for value in group.values)
    if commas and name in NEVER_SEVERAL:
        raise ExperimentError(f"{shown}: a number has no commas; try: {group.flag} {''.join(parts)}")
    one_run = command == "run" and name != "budgets" and SETTINGS[name] != "bool"
    if one_run and len(parts) > 1 and name in NEVER_SEVERAL:
        raise ExperimentError(f"{shown}: a run has one value of each setting; give one")
    if one_run and len(parts) > 1:
        raise ExperimentError(
            f"{shown}: a run has one value of each setting; for several, separated by spaces, "
            f"try: {as_sweep(groups)}"
        )
    if commas:
        raise ExperimentError(
            f"{shown}: separate values by spaces; try: {group.flag} {shlex.join(parts)}"
        )


def as_sweep(groups: list[Group]) -> str:
    """The command line of a run as that of a sweep, without the flags that only a run has."""
    words = ["efhc", "sweep"]
    for group in groups[1:]:
        name, flag = group.name, group.flag
        if name not in flags_of("run") and (known := meant_field(name, flags_of("run"))):
            name, flag = known, f"--{known.replace('_', '-')}"
        if name in flags_of("run") - flags_of("sweep"):
            continue
        several = name in SETTINGS and name != "graph_file"
        values = group.parts if several else group.values
        if SETTINGS.get(name) == "bool" and not values:  # in a sweep, booleans take a value
            values = ["True"]
        words += [flag, *values]
    return shlex.join(words)
