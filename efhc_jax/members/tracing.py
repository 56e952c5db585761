"""Members in the compiled program: their parameters as values, and what tracing them may raise."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr

from efhc_jax.errors import ExperimentError
from efhc_jax.members.failures import raised
from efhc_jax.members.parameters import declared, is_traced

_DTYPES = {float: float, int: jnp.int32, bool: jnp.bool_}  # float has the precision of the program


def as_arrays(member: Any, parameters: Any) -> Any:
    """The parameters with arrays in place of numbers and booleans, as a tree; None if there are none."""
    if parameters is None:
        return None
    kind = parameters.__class__
    _make_tree(kind)
    values = {name: getattr(parameters, name) for name in declared(member)}
    for name, one in declared(member).items():
        if is_traced(one):
            values[name] = jnp.asarray(values[name], jnp.result_type(_DTYPES[one.kind]))
    return _holding(kind, values)


def texts_of(member: Any, parameters: Any) -> tuple[tuple[str, str], ...]:
    """The parameters that are part of the compiled program, by name."""
    known = declared(member)
    return tuple((name, getattr(parameters, name)) for name, one in known.items() if not is_traced(one))


@functools.cache
def _make_tree(kind: type) -> None:
    """Register a dataclass of parameters as a tree, with texts as its static part."""
    known = declared(_Of(kind))
    traced = [name for name, one in known.items() if is_traced(one)]
    texts = [name for name in known if name not in traced]

    def flatten(parameters: Any) -> tuple[list[Any], tuple[str, ...]]:
        arrays = [(jax.tree_util.GetAttrKey(name), getattr(parameters, name)) for name in traced]
        return arrays, tuple(getattr(parameters, name) for name in texts)

    def unflatten(static: tuple[str, ...], arrays: Any) -> Any:
        values = zip([*texts, *traced], [*static, *arrays], strict=True)
        return _holding(kind, dict(values))

    jax.tree_util.register_pytree_with_keys(kind, flatten, unflatten)


def _holding(kind: type, values: dict[str, Any]) -> Any:
    """An object of the class with these values, whose own checks are for numbers and not for arrays."""
    made: Any = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made


class _Of(NamedTuple):
    parameters: type


def explained(error: Exception, function: str) -> str:
    """The reason why a function of a member could not be traced, and what to do."""
    if isinstance(error, jax.errors.TracerArrayConversionError):
        return f"{function} calls NumPy on a value of the running program; use jax.numpy"
    if isinstance(error, jax.errors.ConcretizationTypeError):
        return (
            f"{function} needs a concrete value during compilation, as Python's if, and, or, not do; "
            "use jnp.where, &, | and ~"
        )
    return raised(error, function)


def differs(one: Any, other: Any) -> str:
    """The difference of two trees in structure, shapes or types; empty if there is none."""
    structure: Any = jax.tree.structure(one)
    if structure != jax.tree.structure(other):
        return f"{jax.tree.structure(other)} in place of {structure}"
    for before, after in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        if (before.shape, before.dtype) != (after.shape, after.dtype):
            return f"{after.dtype} {after.shape} in place of {before.dtype} {before.shape}"
    return ""


def check_leaves_out_host(source: str, problem: str, program: Jaxpr) -> None:
    """Raise if a function of a member calls Python from the compiled program.

    Raises:
        ExperimentError: it does; the message has the problem, the operation and what to do.
    """
    if called := called_of_host(program):
        raise ExperimentError(
            f"{source}: {problem}, by {called[0]}; use jax.numpy, without callbacks and jax.debug"
        )


def called_of_host(program: Jaxpr) -> list[str]:
    """The operations of a program that call Python, by name.

    Example:
        >>> called_of_host(jax.make_jaxpr(lambda x: jax.debug.print("{}", x))(1.0).jaxpr)
        ['debug_print']
    """
    names = _primitives(program)
    return [name for name in names if "callback" in name or name.startswith("debug")]


def _primitives(program: Jaxpr) -> Iterator[str]:
    """The names of all operations of a program, also within others."""

    def is_program(value: Any) -> bool:
        return isinstance(value, Jaxpr | ClosedJaxpr)

    for equation in program.eqns:
        yield equation.primitive.name
        for value in jax.tree.leaves(list(equation.params.values()), is_leaf=is_program):
            if is_program(value):
                yield from _primitives(value.jaxpr if isinstance(value, ClosedJaxpr) else value)
