"""Names in an experiment: of members, and of the settings themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from efhc_jax.data import ADD_YOUR_OWN
from efhc_jax.errors import ExperimentError
from efhc_jax.experiment.families import FAMILIES, family_in, full_names
from efhc_jax.members import shown
from efhc_jax.text.names import known_name, meant_field, nearest, other_fields, other_words


class StoredName(str):
    """A name in a stored result that is not registered here.

    The result can be read and plotted; to run it again, the member must be registered.
    """


def as_stored(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a stored result; names that are not registered here become `StoredName`."""
    known = dict(settings)
    for name, family in FAMILIES.items():
        if isinstance(known.get(name), str) and known[name] not in family.names:
            known[name] = StoredName(known[name])
    return known


def check_choice(setting: str, value: Any, allowed: Iterable[str]) -> str:
    """The allowed name that `value` means, in any spelling; raise if there is none."""
    names = list(allowed)
    if isinstance(value, StoredName):
        return value
    known = known_name(value, names)
    if isinstance(known, str) and known in names:
        return known
    wrong = f"{setting}={shown(value)}: unknown"
    if meant := other_words(setting, value):
        raise ExperimentError(f"{wrong}; {meant}")
    close = nearest(value, names)
    hint = f", did you mean {close!r}?" if close else ""
    more = f"; {ADD_YOUR_OWN}" if setting == "dataset" else ""
    raise ExperimentError(f"{wrong}{hint}; choose from {', '.join(names)}{more}")


def no_such_name(name: Any, setting: str, known: list[str]) -> str:
    """The error for a name that is no setting, or no parameter of the members of a family."""
    wrong = shown(name).strip(chr(39))
    if setting:
        own = [full for full in full_names() if family_in(full)[0] == setting]
        close = nearest(name, own)
        hint = f", did you mean {close!r}?" if close else f"; there are {', '.join(own) or 'none'}"
        file = "; a member of your own is registered by its file, --members FILE"
        return f"{wrong}: no registered {setting} has this parameter{hint}{file}"
    owned = [full for full in full_names() if family_in(full)[1] == name]
    close = (owned[0] if owned else None) or meant_field(name, known) or nearest(name, known)
    hint = f", did you mean {close!r}?" if close else f"; the fields are {', '.join(known)}"
    if advice := other_fields(name):
        hint = f"; {advice}"
    return f"{wrong}: no such field{hint}"
