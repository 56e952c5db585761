"""Validation of dynamics that users register."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from efhc_jax.errors import EfhcError, ExperimentError
from efhc_jax.members import declared
from efhc_jax.members.tracing import differs, explained
from efhc_jax.network.dynamics.base import (
    Drawing,
    Drawn,
    Dynamics,
    NetworkValues,
    Snapshot,
    first_memory,
)

_FUNCTIONS = ("at", "init", "draw", "fit", "room", "links", "problem")


def check_dynamics(name: str, dynamics: Any) -> None:
    """Raise unless it is a `Dynamics` of functions, with valid parameters.

    Raises:
        ExperimentError: it is not; the message has its name and what to do.
    """
    source = f"dynamics={name!r}"
    if not isinstance(dynamics, Dynamics):
        raise ExperimentError(
            f"{source}: is a {type(dynamics).__name__}; register efhc_jax.Dynamics(at)"
        )
    for function in _FUNCTIONS:
        value = getattr(dynamics, function)
        if not callable(value) and not (function != "at" and value is None):
            raise ExperimentError(f"{source}: {function}={value!r} is not a function")
    declared(dynamics, source)


def drawn_by(name: str, dynamics: Dynamics, drawing: Drawing) -> Drawn:
    """The values that dynamics draw on the host; nothing if they draw none.

    Raises:
        ExperimentError: their function fails; the message has their name.
    """
    if dynamics.draw is None:
        return Drawn()
    try:
        drawn = dynamics.draw(drawing)
    except EfhcError:  # already in words
        raise
    except Exception as error:  # whatever the user's function raises
        raise ExperimentError(f"dynamics={name!r}: {explained(error, 'draw')}") from error
    if not isinstance(drawn, Drawn):
        raise ExperimentError(f"dynamics={name!r}: draw gives a {type(drawn).__name__}; return a Drawn")
    return drawn


def check_snapshots(name: str, dynamics: Dynamics, network: NetworkValues, parameters: Any) -> None:
    """Raise unless dynamics can be traced, and give the network of an iteration.

    Raises:
        ExperimentError: they cannot; the message has their name and what to do.
    """
    source = f"dynamics={name!r}"

    def first(network: NetworkValues, parameters: Any) -> Any:
        return first_memory(dynamics, network, parameters)

    called = "init"
    try:
        memory = jax.eval_shape(first, network, parameters)
        called = "at"
        found = jax.eval_shape(dynamics.at, network, parameters, memory, jnp.int32(0))
    except Exception as error:  # whatever the user's function raises
        raise ExperimentError(f"{source}: {explained(error, called)}") from error
    if not (isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], Snapshot)):
        raise ExperimentError(
            f"{source}: at gives a {type(found).__name__}; "
            "return a Snapshot, and the memory for the next iteration"
        )
    snapshot, following = found
    links = network.adjacency if snapshot.neighbors is None else snapshot.neighbors
    wanted = {"links": (links.shape, bool), "training": ((network.devices,), bool)}
    for field, (shape, dtype) in wanted.items():
        value = getattr(snapshot, field)
        if (jnp.shape(value), jnp.result_type(value)) != (shape, dtype):
            raise ExperimentError(
                f"{source}: at gives {field} as {jnp.result_type(value)} {jnp.shape(value)}; "
                f"return bool {shape}"
            )
    if found_other := differs(memory, following):
        raise ExperimentError(
            f"{source}: at changes the memory that init gives, {found_other}; "
            "return the same structure, shapes and types"
        )
