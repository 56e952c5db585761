"""The members of a family by name, imported when they are first used."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, Generic, TypeVar

from efhc_jax.errors import ExperimentError

Member = TypeVar("Member")


class Registry(MutableMapping[str, Member], Generic[Member]):
    """A dictionary from names to members.

    An entry of the package may be a location, "module:name", so that names are known without importing
    JAX. Users register members like entries of any dictionary.

    Example:
        >>> SHAPES = Registry({"fraction": "fractions:Fraction"})
        >>> list(SHAPES), SHAPES["fraction"](1, 2)
        (['fraction'], Fraction(1, 2))
    """

    def __init__(self, entries: Mapping[str, Member | str]):
        self._entries: dict[str, Any] = dict(entries)
        self._own = dict(entries)

    def __getitem__(self, name: str) -> Member:
        entry = self._entries[name] = _imported(self._entries[name])
        return entry

    def __setitem__(self, name: str, member: Member) -> None:
        if not isinstance(name, str) or not name:
            raise ExperimentError(f"{name!r}: the name of a member is a text; give one")
        self._entries[name] = member

    def __delitem__(self, name: str) -> None:
        del self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __repr__(self) -> str:
        return f"Registry({', '.join(self._entries)})"

    def is_built_in(self, name: str) -> bool:
        """Whether the name stands for the member of the package, which no user has replaced."""
        if name not in self._own or name not in self._entries:
            return False
        own, entry = self._own[name], self._entries[name]
        return own is entry or (not isinstance(entry, str) and _imported(own) is entry)


def lazily(module: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A `__getattr__` for a module: names that are imported when they are first used.

    Args:
        module: the name of the module.
        homes: for each name, the module below it that defines it.
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{module}.{homes[name]}"), name)

    return find


def _imported(entry: Any) -> Any:
    """An entry, or what it is the location of."""
    if not isinstance(entry, str):
        return entry
    module, _, attribute = entry.partition(":")
    return getattr(importlib.import_module(module), attribute)
