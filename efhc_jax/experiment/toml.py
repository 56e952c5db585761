"""Settings in TOML files: at the top level, or in the table of the member that they belong to."""

from __future__ import annotations

import contextlib
import json
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from efhc_jax.errors import ExperimentError
from efhc_jax.experiment.families import FAMILIES

_MOST_BYTES = 2**20


def read_toml(path: str | Path) -> dict[str, Any]:
    """The settings of a file by name; those of a table by their full names.

    Raises:
        ExperimentError: the file cannot be read, or is not TOML.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) <= _MOST_BYTES:
            return _once(path, _flat(tomllib.loads(content.decode())))
    except OSError as error:
        raise ExperimentError(f"config={path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ExperimentError(f"config={path}: is not text in UTF-8") from None
    except ExperimentError as error:
        raise ExperimentError(f"config={path}: {str(error).removeprefix(f'config={path}: ')}") from None
    except (ValueError, RecursionError) as error:  # ValueError is also a number of 5,000 digits
        raise ExperimentError(f"config={path}: is not valid TOML: {error}") from None
    raise ExperimentError(f"config={path}: is too large for a settings file")


def _once(path: str | Path, settings: Iterator[tuple[str, Any]]) -> dict[str, Any]:
    """The settings by name; raise if one is given both in a table and by its full name."""
    found: dict[str, Any] = {}
    for name, value in settings:
        if name in found:
            raise ExperimentError(f"config={path}: {name} is given twice; give it once")
        found[name] = value
    return found


def _flat(tables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in tables.items():
        if not isinstance(value, dict):
            yield name, value
            continue
        if "name" in value and name not in FAMILIES:
            raise ExperimentError(f"{name}: is no table; give {name} = …")
        for own, inner in value.items():
            yield (name if own == "name" else f"{name}.{own}"), inner


@contextlib.contextmanager
def said_of(path: str | Path) -> Iterator[None]:
    """Name the file in errors about its settings."""
    try:
        yield
    except ExperimentError as error:
        raise ExperimentError(f"config={path}: {error}") from None


def to_toml(settings: Mapping[str, Any], families: Sequence[str], idle: Collection[str] = ()) -> str:
    """Settings as TOML.

    Args:
        settings: values by name, with parameters of members by their full names.
        families: the settings that name a member; with its parameters they are a table.
        idle: settings without effect, which are comments.

    Example:
        >>> print(to_toml({"dynamics": "markov", "seed": 3, "dynamics.failure": 0.1}, ["dynamics"]))
        seed = 3
        <BLANKLINE>
        [dynamics]
        name = "markov"
        failure = 0.1
        <BLANKLINE>
    """
    owned = {
        family: [name for name in settings if name.startswith(f"{family}.") and name not in idle]
        for family in families
    }
    tables = [family for family in families if owned[family] and family not in idle]

    def line(key: str, name: str) -> str:
        return f"{'# ' if name in idle else ''}{key} = {_value(settings[name])}"

    lines = [line(name, name) for name in settings if "." not in name and name not in tables]
    lines += [line(name, name) for name in settings if "." in name and name in idle]
    for family in tables:
        lines += ["", f"[{family}]", line("name", family)]
        lines += [line(name.removeprefix(f"{family}."), name) for name in owned[family]]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return repr(list(value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
