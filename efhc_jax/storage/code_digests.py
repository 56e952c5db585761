"""Digests of the code of members that users register, so that a change of it is noticed.

A digest covers a function's own code, the values that it closes over, and what it uses from its own
module and from others in the same folder. Packages count as what does not change between a stop and a
resumption.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from efhc_jax.compressors import COMPRESSORS
from efhc_jax.experiment.experiment import Experiment
from efhc_jax.experiment.families import FAMILIES, parameters_of

_COMPRESSOR = "method.compressor"
_REGISTRIES: dict[str, Any] = {
    setting: family.registry for setting, family in FAMILIES.items() if setting != "dataset"
} | {_COMPRESSOR: COMPRESSORS}


def member_digests(experiments: Iterable[Experiment]) -> dict[str, str]:
    """Digests of the members of these experiments that are not part of the package.

    Each begins with the version of Python, without which digests cannot be compared.
    """
    experiments = list(experiments)
    used = {(family, getattr(e, family)) for e in experiments for family in FAMILIES}
    used |= {(_COMPRESSOR, e[_COMPRESSOR]) for e in experiments if _is_compressed(e)}
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {
        f"{family} {name!r}": f"{version}:{code_digest(_REGISTRIES[family][name])}"
        for family, name in sorted(used)
        if family in _REGISTRIES
        and name in _REGISTRIES[family]
        and not _REGISTRIES[family].is_built_in(name)
    }


def _is_compressed(experiment: Experiment) -> bool:
    """Whether the method has a compressor."""
    return "compressor" in parameters_of("method", experiment.method)


def code_digest(member: Any) -> str:
    """Digest of a function, a class, or a tuple with functions.

    Example:
        >>> code_digest(lambda x: x + 1) == code_digest(lambda x: x + 1)
        True
        >>> code_digest(lambda x: x + 1) == code_digest(lambda x: x + 2)
        False
    """
    digest = hashlib.sha256()
    for piece in _pieces(member, {}):
        digest.update(len(piece).to_bytes(8, "little") + piece)
    return digest.hexdigest()[:16]


def _pieces(value: Any, seen: dict[int, Any]) -> Iterator[bytes]:
    """All that distinguishes a value, in a fixed order."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, types.EllipsisType)):
        yield repr(value).encode(errors="backslashreplace")
        return
    if id(value) in seen:
        return
    seen[id(value)] = value  # kept, so that no other object has its id
    yield type(value).__name__.encode()
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from _pieces(part, seen)
    elif isinstance(value, (set, frozenset)):
        yield repr(sorted(map(repr, value))).encode()
    elif isinstance(value, dict):
        for key, part in value.items():
            yield repr(key).encode(errors="backslashreplace")
            yield from _pieces(part, seen)
    elif isinstance(value, types.CodeType):
        yield value.co_code
        yield from _pieces(value.co_names, seen)
        for constant in value.co_consts:
            yield from _pieces(constant, seen)
    elif isinstance(value, types.FunctionType):
        yield from _pieces((value.__code__, value.__defaults__, value.__kwdefaults__), seen)
        for cell in value.__closure__ or ():
            yield from _pieces(cell.cell_contents, seen)
        for name in sorted(_names(value.__code__)):
            if name in value.__globals__ and _is_beside(value.__globals__[name], value.__module__):
                yield from _pieces(value.__globals__[name], seen)
    elif isinstance(value, functools.partial):
        yield from _pieces((value.func, value.args, value.keywords), seen)
    elif isinstance(value, (staticmethod, classmethod)) or hasattr(value, "__wrapped__"):
        yield from _pieces(value.__wrapped__, seen)
    elif isinstance(value, types.ModuleType):
        if value.__file__ is not None:
            yield Path(value.__file__).read_bytes()
    elif isinstance(value, type):
        for name, part in sorted(vars(value).items()):
            if not name.startswith("__") or isinstance(part, types.FunctionType):
                yield from _pieces(part, seen)
    elif isinstance(value, np.ndarray):
        yield value.tobytes()


def _names(code: types.CodeType) -> set[str]:
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return set(code.co_names).union(*(_names(one) for one in inner))


def _is_beside(value: Any, module: str) -> bool:
    """Whether a global value is a constant, or defined in this module or another one in its folder."""
    if isinstance(value, (bool, int, float, str, tuple, list, dict, set, frozenset, np.ndarray)):
        return True
    home = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    return home == module or (_folder_of(home) is not None and _folder_of(home) == _folder_of(module))


def _folder_of(module: str | None) -> Path | None:
    """The folder of a module that is neither installed nor part of a package."""
    found = sys.modules.get(module or "")
    file = getattr(found, "__file__", None)
    if found is None or file is None or found.__package__ or "site-packages" in file:
        return None
    return Path(file).resolve().parent
