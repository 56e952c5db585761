"""The settings of an experiment as flags, with the parameters of all registered members."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, get_type_hints

import tyro

from efhc_jax.experiment.experiment import Experiment
from efhc_jax.experiment.families import FAMILIES, family_in, full_names, users_of
from efhc_jax.members import Registry
from efhc_jax.text.docstrings import documentation

_KINDS = {"str": str, "int": int, "float": float, "bool": bool}


@dataclass(frozen=True)
class Settings:
    """All settings of an experiment."""

    def values(self) -> dict[str, Any]:
        """The values by full name, without parameters that are not given."""
        known = flags()
        found = {_full_name(field): getattr(self, field) for field in vars(self)}
        return {
            name: _literal(value) if known[name].mixed else value
            for name, value in found.items()
            if value is not None
        }


class Flag(NamedTuple):
    """A setting on the command line."""

    kind: type
    default: Any
    help: str
    users: tuple[str, ...] = ()  # the members that have this parameter
    mixed: bool = False  # whether these differ in its type or default


def flags() -> dict[str, Flag]:
    """All settings by name, each followed by the parameters of members that it can name."""
    texts, parameters = documentation(Experiment), full_names()
    found = {}
    for field in dataclasses.fields(Experiment):
        kind = _KINDS.get(str(field.type), float)
        text = texts[field.name] + _registered(field.name)
        found[field.name] = Flag(kind, field.default, text)
        for name in parameters:
            if family_in(name)[0] == field.name:
                found[name] = _parameter(name)
    return found


def _parameter(name: str) -> Flag:
    users = users_of(*family_in(name))
    first, same = next(iter(users.values())), {(one.kind, one.default) for one in users.values()}
    if len(same) == 1:
        return Flag(first.kind, first.default, first.help, tuple(users))
    words = "; ".join(f"{member}: {one.help} (default: {one.default})" for member, one in users.items())
    return Flag(str, None, words, tuple(users), mixed=True)


def _literal(value: Any) -> Any:
    """A text as the number or boolean that it may stand for: which, the member decides."""
    if isinstance(value, tuple):
        return tuple(_literal(one) for one in value)
    if not isinstance(value, str):
        return value
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(value)
    return value


def _registered(setting: str) -> str:
    """The members that users have registered, for the help of the setting that names them."""
    registry = FAMILIES[setting].registry if setting in FAMILIES else None
    if not isinstance(registry, Registry):
        return ""
    own = [name for name in registry if not registry.is_built_in(name)]
    return f" Registered: {', '.join(own)}." if own else ""


def for_run(defaults: Mapping[str, Any] | None = None) -> type[Settings]:
    """A class with a value per setting, unchecked: flags that override a file must not judge it.

    Args:
        defaults: values of a file by full name, which replace the defaults.
    """
    hints, given = get_type_hints(Experiment), defaults or {}
    fields: list[Any] = []
    for name, flag in flags().items():
        value = given.get(name, flag.default)
        kind: Any = flag.kind if flag.users else hints[name]
        arg = tyro.conf.arg(help=flag.help)
        if flag.mixed:
            kind, value = str | None, None if value is None else str(value)
        if flag.users:
            is_switch = flag.kind is bool
            arg = _arg(name, flag, None if is_switch else _metavar(flag), _hint(flag, value))
        fields.append((_identifier(name), Annotated[kind, arg], dataclasses.field(default=value)))
    return _made(fields, "All settings of one run.")


def for_sweep() -> type[Settings]:
    """A class with any number of values per setting; None stands for the file, or the default."""
    fields = []
    for name, flag in flags().items():
        arg = _arg(name, flag, f"{_metavar(flag)} …", _hint(flag))
        several: Any = Annotated[tuple[flag.kind, ...] | None, arg]  # type: ignore[name-defined]
        fields.append((_identifier(name), several, dataclasses.field(default=None)))
    return _made(fields, "Every setting of an experiment; several values make it an axis of the sweep.")


def with_settings(command: type, kind: type[Settings], default: Settings | None = None) -> type:
    """A command whose settings are of this class."""
    make = dataclasses.field(default_factory=kind if default is None else lambda: default)
    own = dataclasses.make_dataclass(
        command.__name__, [("settings", kind, make)], bases=(command,), frozen=True
    )
    own.__doc__ = command.__doc__
    return own


def _made(fields: list[Any], doc: str) -> type[Settings]:
    made = dataclasses.make_dataclass("Settings", fields, bases=(Settings,), frozen=True)
    made.__doc__ = doc
    return made


def _arg(name: str, flag: Flag, metavar: str | None, hint: str) -> Any:
    spelled = name.replace("_", "-") if flag.users else None
    return tyro.conf.arg(name=spelled, metavar=metavar, help=flag.help, help_behavior_hint=hint)


def _metavar(flag: Flag) -> str:
    return "VALUE" if flag.mixed else flag.kind.__name__.upper()


def _hint(flag: Flag, value: Any = None) -> str:
    """The members that use a parameter, and the default."""
    if flag.mixed:
        return f"(default: {value})" if value is not None else ""
    default = flag.default if value is None else value
    shown = "none" if default in ("", ()) else str(default)
    return f"({', '.join(flag.users)}; default: {shown})" if flag.users else f"(default: {shown})"


def _identifier(name: str) -> str:
    return name.replace(".", "__")


def _full_name(field: str) -> str:
    return field.replace("__", ".", 1)
