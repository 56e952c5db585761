"""Names in other spellings, names that other tools use, and the nearest known name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from typing import Any

# Names that other simulators and papers use for a field of `Experiment`, squashed.
ALIASES: dict[str, str] = {
    "lr": "learning_rate",
    "stepsize": "learning_rate",
    "lrschedule": "learning_rate_schedule",
    "clients": "devices",
    "numclients": "devices",
    "numdevices": "devices",
    "nodes": "devices",
    "numnodes": "devices",
    "agents": "devices",
    "workers": "devices",
    "rounds": "iterations",
    "numrounds": "iterations",
    "steps": "iterations",
    "numsteps": "iterations",
    "batch": "batch_size",
    "bs": "batch_size",
    "topology": "graph",
    "algorithm": "policy",
    "algo": "policy",
    "radius": "connectivity",
    "partition": "split",
    "data": "dataset",
    "threshold": "r",
    "bandwidth": "mean_bandwidth",
    "evalinterval": "eval_every",
    "evalfrequency": "eval_every",
    "labelsperclient": "labels_per_device",
    "classesperclient": "labels_per_device",
}

_EPOCHS = (
    "a run is counted in iterations, not in passes over the data; use {}",
    ("iterations",),
)

# Names that other simulators and papers use for something else, with advice and its fields; squashed.
_OTHER_FIELDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "alpha": (
        "use {} for the step size α of the paper, or {} for the Dirichlet split",
        ("learning_rate", "dirichlet_alpha"),
    ),
    "epochs": _EPOCHS,
    "numepochs": _EPOCHS,
    "localepochs": _EPOCHS,
}

# Common values that are not names here, with the names that may be meant; by field, squashed.
_OTHER_WORDS = {
    "split": {
        "noniid": "give 'dirichlet' (uneven shares, see dirichlet_alpha) or 'labels' "
        "(labels_per_device labels each)"
    },
}


def known_name(value: Any, names: Iterable[str]) -> Any:
    """The known name of which `value` is another spelling, or `value` itself.

    Case, hyphens, underscores and spaces are ignored.

    Example:
        >>> known_name("EF-HC", ["efhc", "gt"]), known_name("Fashion MNIST", ["fashion_mnist"])
        ('efhc', 'fashion_mnist')
        >>> known_name("efch", ["efhc", "gt"])
        'efch'
    """
    names = list(names)
    if not isinstance(value, str) or value in names:
        return value
    alike = [name for name in names if squashed(name) == squashed(value)]
    return alike[0] if len(alike) == 1 else value


def other_words(field: str, value: Any) -> str:
    """Advice on which name to give instead of a common one that is not known; empty if there is none."""
    return _OTHER_WORDS.get(field, {}).get(squashed(value), "")


def other_fields(name: Any, spelled: Callable[[str], str] = repr) -> str:
    """Advice on which field to use instead of a name that means several fields, or none exactly.

    Args:
        name: the name, in any spelling.
        spelled: how a field is written in the advice.

    Example:
        >>> other_fields("epochs")
        "a run is counted in iterations, not in passes over the data; use 'iterations'"
        >>> other_fields("rounds")
        ''
    """
    advice, fields = _OTHER_FIELDS.get(squashed(name), ("", ()))
    return advice.format(*map(spelled, fields))


def meant(value: Any, names: Iterable[str]) -> str | None:
    """The name of which `value` is another spelling, or the only one that begins with it."""
    names = list(names)
    if not squashed(value):
        return None
    if (known := known_name(value, names)) in names:
        return known
    longer = [name for name in names if squashed(name).startswith(squashed(value))]
    return longer[0] if len(longer) == 1 else None


def meant_field(name: Any, fields: Iterable[str]) -> str | None:
    """The field that `name` means: another spelling, an abbreviation, or a name that other tools use."""
    fields = list(fields)
    known, alias = known_name(name, fields), ALIASES.get(squashed(name))
    return known if known in fields else alias if alias in fields else meant(name, fields)


def nearest(value: Any, names: Iterable[str]) -> str | None:
    """The name that is probably meant, also if it is only similar.

    Example:
        >>> nearest("watts", ["ring", "watts_strogatz"]), nearest("rnig", ["ring", "watts_strogatz"])
        ('watts_strogatz', 'ring')
    """
    names = list(names)
    if not isinstance(value, str):
        return None
    close = difflib.get_close_matches(value[:80], names, n=1)
    return meant(value, names) or (close[0] if close else None)


def squashed(name: Any) -> str:
    """A name in lower case without hyphens, underscores and spaces."""
    return re.sub(r"[-_\s]", "", name).lower() if isinstance(name, str) else ""
