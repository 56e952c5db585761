"""Parameters of a member: a frozen dataclass, whose fields have a default, a range and a line of help.

Numbers and booleans are traced: runs that differ only in them share a compilation. Text is static.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from efhc_jax.errors import ExperimentError
from efhc_jax.members.limits import Limit, shown

_KINDS: dict[str, type] = {"float": float, "int": int, "bool": bool, "str": str}
_RESERVED = ("name",)  # of the member itself, in a table of a TOML file
_LARGEST_INTEGER = 2**31 - 1  # whole numbers have 32 bits in the compiled program


class Parameter(NamedTuple):
    """One parameter of a member."""

    name: str
    kind: type  # float, int, bool or str
    default: Any
    help: str
    limit: Limit | None  # of a number

    def check(self, name: str, value: Any) -> Any:
        """The value in the parameter's type.

        Args:
            name: the full name, such as `policy.rate`.
            value: the value that was given.

        Raises:
            ExperimentError: it has another type, or is out of range.
        """
        if self.limit is not None:
            return self.limit.check(name, value)
        if not isinstance(value, self.kind):
            wanted = "true or false" if self.kind is bool else "text"
            raise ExperimentError(f"{name}={shown(value)}: give {wanted}")
        return value


def parameter(
    default: Any,
    help: str = "",
    *,
    low: float = -math.inf,
    high: float = math.inf,
    above_low: bool = False,
    below_high: bool = False,
    infinite: bool = False,
) -> Any:
    """A field of a dataclass of parameters.

    Args:
        default: its default.
        help: one line for `--help` and the documentation.
        low: smallest value.
        high: largest value.
        above_low: exclude the smallest value.
        below_high: exclude the largest value.
        infinite: allow infinite values.

    Example:
        >>> @dataclasses.dataclass(frozen=True)
        ... class Lossy:
        ...     loss: float = parameter(0.1, "Probability that a message is lost.", low=0, high=1)
        >>> Lossy().loss
        0.1
    """
    limits = (low, high, above_low, below_high, infinite)
    return dataclasses.field(default=default, metadata={"help": help, "limits": limits})


def declared(member: Any, source: str = "member") -> dict[str, Parameter]:
    """The parameters that a member declares, by name; empty if it has none.

    Args:
        member: an entry of a registry, with its dataclass as `member.parameters`.
        source: the member for error messages, such as `policy='mine'`.

    Raises:
        ExperimentError: the declaration is invalid; the message names the member.

    Example:
        >>> from efhc_jax.policies import POLICIES
        >>> list(declared(POLICIES["adaptive"]))
        ['rate', 'gain']
    """
    kind = parameters_class(member)
    if kind is None:
        return {}
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        raise ExperimentError(
            f"{source}: parameters={shown(kind)} is not the class of a dataclass; "
            "declare it with @dataclasses.dataclass(frozen=True)"
        )
    if not kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise ExperimentError(
            f"{source}: the class {kind.__name__} of its parameters can be changed; "
            "declare it with @dataclasses.dataclass(frozen=True)"
        )
    try:
        return _declared(kind)
    except ExperimentError as error:
        raise ExperimentError(f"{source}: {error}") from None


def parameters_class(member: Any) -> type | None:
    """The dataclass of a member's parameters; None if it has none."""
    return getattr(member, "parameters", None)


def make_parameters(member: Any, values: Mapping[str, Any]) -> Any:
    """A member's parameters with these values, and defaults for the others; None if it has none."""
    kind = parameters_class(member)
    return None if kind is None else kind(**values)


def is_traced(parameter: Parameter) -> bool:
    """Whether a parameter is a value of the compiled program, and not a part of it."""
    return parameter.kind is not str


def _written(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)


@functools.cache
def _declared(kind: type) -> dict[str, Parameter]:
    found = {}
    for field in dataclasses.fields(kind):
        written = field.type if isinstance(field.type, str) else _written(field.type)
        if field.name in _RESERVED:
            raise ExperimentError(f"the parameter {field.name} has a name that is taken; rename it")
        if field.default is dataclasses.MISSING:
            raise ExperimentError(f"the parameter {field.name} has no default; give it one")
        if written not in _KINDS:
            raise ExperimentError(
                f"the parameter {field.name} is annotated as {written!r}; use float, int, bool or str"
            )
        number = _KINDS[written]
        limit = None
        if number in (float, int):
            low, high, *rest = field.metadata.get("limits", (-math.inf, math.inf, False, False, False))
            if number is int:
                low, high = max(low, -_LARGEST_INTEGER), min(high, _LARGEST_INTEGER)
            if low > high:
                raise ExperimentError(f"the parameter {field.name} has low={low:g} above high={high:g}")
            limit = Limit(number, low, high, *rest)
        one = Parameter(field.name, number, field.default, field.metadata.get("help", ""), limit)
        found[field.name] = one._replace(default=one.check(field.name, field.default))
    return found
