"""Common mistakes on the command line: flags of other tools, several values for a run, commas.

They are recognized before the arguments are parsed, and the error says what to type instead.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
import sys
from typing import NamedTuple

from efhc_jax.cli.run import Run
from efhc_jax.cli.settings import flags
from efhc_jax.cli.sweep import Sweep
from efhc_jax.errors import ExperimentError
from efhc_jax.experiment.axes import NOT_AXES
from efhc_jax.experiment.experiment import check_names
from efhc_jax.experiment.families import family_in
from efhc_jax.experiment.renamed import RENAMED
from efhc_jax.text.names import ALIASES, meant_field, other_fields
from efhc_jax.text.printing import print_text


def settings() -> dict[str, type]:
    """The types of all settings, and of the parameters of all registered members."""
    return {name: flag.kind for name, flag in flags().items()} | {"budgets": tuple}


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
        """The values, even if they are separated by commas or in brackets."""
        pieces = (part for value in self.values for part in value.strip("[]()").split(","))
        return [part.strip(" '\"") for part in pieces if part.strip()]


def check_words(words: list[str]) -> None:
    """Raise an error that says what to type, if it is clear what was meant.

    Args:
        words: the command line, starting with the command.

    Raises:
        ExperimentError: the flags are those of another tool or command, or have too many values.
    """
    if not words or words[0] not in ("run", "sweep") or {"-h", "--help"} & set(words):
        return
    groups, known, kinds = grouped(words[1:]), flags_of(words[0]), settings()
    _note_repeated(groups)
    for group in groups[1:]:
        if group.name not in known:
            _check_flag(words[0], group, groups)
        elif group.name in kinds and group.name != "graph_file":
            _check_values(words[0], group, groups, kinds[group.name])


def _note_repeated(groups: list[Group]) -> None:
    """Say that of a flag that is given twice, as in a script with further arguments, the last counts."""
    last = {group.name: group for group in groups[1:]}
    for name, group in last.items():
        before = [one for one in groups[1:] if one.name == name and one is not group]
        if any(one.values != group.values for one in before):
            note = f"{group.flag} is given twice; the last counts: {shlex.join(group.values)}"
            print_text(f"efhc: note: {note}", file=sys.stderr)


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
    return own - {"settings"} | set(settings())


def _check_flag(command: str, group: Group, groups: list[Group]) -> None:
    if group.name in RENAMED:
        raise ExperimentError(f"{group.flag}: is now {_as_flag(RENAMED[group.name])}; give that")
    if family_in(group.name)[0]:
        check_names([group.name])
    if command == "sweep" and group.name == "batch":
        raise ExperimentError(
            f"{group.flag}: is now --runs-at-once; give that, or --batch-size for samples per mini-batch"
        )
    if command == "run" and group.name in flags_of("sweep") and group.name not in ALIASES:
        raise ExperimentError(
            f"{group.flag}: is a flag of efhc sweep, and efhc run makes one run; try: {as_sweep(groups)}"
        )
    if advice := other_fields(group.name, _as_flag):
        raise ExperimentError(f"{group.flag}: no such flag; {advice}")
    if known := meant_field(group.name, flags_of(command)):
        raise ExperimentError(f"{group.flag}: no such flag; use {_as_flag(known)}")


def _as_flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _check_values(command: str, group: Group, groups: list[Group], kind: type) -> None:
    name, parts = group.name, group.parts
    shown = f"{name}={' '.join(group.values)}"
    commas = any("," in value for value in group.values)
    several = len(parts) > 1 and name != "budgets" and kind is not bool
    sweep = as_sweep(groups) if command == "run" else f"{group.flag} {shlex.join(parts)}"
    if found := _with_comma(group, kind):
        number, rule = found
        other = "" if name in NOT_AXES else f", or for several values, separated by spaces: {sweep}"
        raise ExperimentError(f"{shown}: {rule}; try: {group.flag} {number}{other}")
    if several and name in NOT_AXES and (commas or command == "run"):
        raise ExperimentError(f"{shown}: give one value; {NOT_AXES[name]}")
    if several and command == "run":
        raise ExperimentError(
            f"{shown}: a run has one value of each setting; for several, separated by spaces, "
            f"try: {sweep}"
        )
    if commas:
        raise ExperimentError(
            f"{shown}: separate values by spaces; try: {group.flag} {shlex.join(parts)}"
        )


def _with_comma(group: Group, kind: type) -> tuple[str, str] | None:
    """The number that a value with commas may stand for, and how to write it; None if there is none."""
    value = group.values[0] if len(group.values) == 1 else ""
    if kind is int and re.fullmatch(r"\d{1,3}(,\d{3})+", value):
        return value.replace(",", ""), "a number has no commas"
    if kind is float and re.fullmatch(r"[-+]?\d*,\d+", value):
        return value.replace(",", "."), "a number has a decimal point, not a comma"
    return None


def as_sweep(groups: list[Group]) -> str:
    """The command line of a run as that of a sweep, without the flags that only a run has."""
    words, kinds = ["efhc", "sweep"], settings()
    for group in groups[1:]:
        name, flag = group.name, group.flag
        if name not in flags_of("run") and (known := meant_field(name, flags_of("run"))):
            name, flag = known, _as_flag(known)
        if name in flags_of("run") - flags_of("sweep"):
            continue
        several = name in kinds and name != "graph_file"
        values = group.parts if several else group.values
        if kinds.get(name) is bool and not values:  # in a sweep, booleans take a value
            values = ["True"]
        words += [flag, *values]
    return shlex.join(words)
