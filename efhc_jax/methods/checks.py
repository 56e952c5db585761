"""Validation of methods that users register."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from efhc_jax.errors import ExperimentError
from efhc_jax.members import check_functions, declared, make_parameters
from efhc_jax.members.tracing import as_arrays, check_leaves_out_host, differs, explained
from efhc_jax.methods import METHODS
from efhc_jax.methods.base import Method, Turn, Updated, first_memory

_DEVICES = 3  # of the models that a method is tried on


def check_method(name: str, method: Any, parameters: Any = None, shape: tuple[int, ...] = (4,)) -> None:
    """Raise unless a method can be traced, and keeps the shapes of models and memory.

    Args:
        name: its name.
        method: the method.
        parameters: of the run; by default those that it declares.
        shape: of the parameters of a device.

    Raises:
        ExperimentError: it does not; the message has its name and what to do.
    """
    if METHODS.is_built_in(name):
        return
    source = f"method={name!r}"
    if not isinstance(method, Method):
        raise ExperimentError(
            f"{source}: is a {type(method).__name__}; register efhc_jax.Method(update)"
        )
    check_functions(source, method, ("update",), optional=("init",))
    unknown = set(method.steadied_by) - set(declared(method, source))
    if unknown:
        raise ExperimentError(
            f"{source}: steadied_by={method.steadied_by!r}; give a tuple of names of its parameters"
        )
    given = make_parameters(method, {}) if parameters is None else parameters
    values = as_arrays(method, given)
    weights = jax.ShapeDtypeStruct((_DEVICES, *shape), jnp.result_type(float))
    _, memory = _traced(source, "init", lambda w, p: first_memory(method, w, p), weights, values)
    program, found = _traced(
        source, "update", lambda w, p, m: method.update(_turn(w), p, m), weights, values, memory
    )
    if not isinstance(found, Updated):
        raise ExperimentError(
            f"{source}: update gives a {type(found).__name__}; return efhc_jax.Updated(weights, memory)"
        )
    if wrong := differs(weights, found.weights):
        raise ExperimentError(f"{source}: update gives weights of {wrong}; keep their shape and type")
    if wrong := differs(memory, found.memory):
        raise ExperimentError(
            f"{source}: update changes the memory that init gives, {wrong}; "
            "return the same structure, shapes and types"
        )
    if method.keeps_copies != (found.copies is not None and found.bits is not None):
        raise ExperimentError(
            f"{source}: keeps_copies={method.keeps_copies}, so update must return "
            + ("copies and bits" if method.keeps_copies else "neither copies nor bits")
        )
    check_leaves_out_host(source, "update calls Python in every iteration", program.jaxpr)


def _traced(source: str, name: str, function: Any, *arguments: Any) -> tuple[Any, Any]:
    """The program of a function of a method, and the shapes that it returns."""
    try:
        return jax.make_jaxpr(function, return_shape=True)(*arguments)
    except Exception as error:  # whatever the user's function raises
        raise ExperimentError(f"{source}: {explained(error, name)}") from error


def _turn(weights: Any) -> Turn:
    """The arguments of a method in a run, without effect."""
    return Turn(
        iteration=jnp.int32(0),
        weights=weights,
        last_broadcast=weights,
        fired=jnp.ones(_DEVICES, bool),
        gradient=weights,
        training=jnp.ones(_DEVICES, bool),
        learning_rate=jnp.ones(()),
        trained=lambda x: x,
        hold=lambda x: x,
        mix=lambda x: x,
        mix_all=lambda x: x,
        words=lambda positions: positions.astype(jnp.uint32),
    )
