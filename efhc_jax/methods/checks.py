"""Validation of methods that users register."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from efhc_jax.errors import ExperimentError
from efhc_jax.members import declared, make_parameters
from efhc_jax.members.tracing import as_arrays, differs, explained
from efhc_jax.methods import METHODS
from efhc_jax.methods.base import Method, Turn, Updated, first_memory

_DEVICES, _PARAMETERS = 3, 4  # of the models that a method is tried on


def check_method(name: str, method: Any) -> None:
    """Raise unless a method can be traced, and keeps the shapes of models and memory.

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
    for function in ("update", "init"):
        value = getattr(method, function)
        if not callable(value) and not (function == "init" and value is None):
            raise ExperimentError(f"{source}: {function}={value!r} is not a function")
    declared(method, source)
    weights = jnp.zeros((_DEVICES, _PARAMETERS))
    parameters = jax.eval_shape(lambda: as_arrays(method, make_parameters(method, {})))
    memory = _traced(source, "init", lambda p: first_memory(method, weights, p), parameters)
    found = _traced(
        source, "update", lambda p, m: method.update(_turn(weights), p, m), parameters, memory
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


def _traced(source: str, name: str, function: Any, *arguments: Any) -> Any:
    """The shapes that a function of a method returns."""
    try:
        return jax.eval_shape(function, *arguments)
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
