"""Validation of dynamics that users register."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from efhc_jax.errors import ExperimentError
from efhc_jax.members import check_functions, declared, said_of_member
from efhc_jax.members.tracing import differs, explained
from efhc_jax.network.dynamics.base import (
    Drawing,
    Drawn,
    Dynamics,
    NetworkValues,
    Snapshot,
    first_memory,
)
from efhc_jax.network.slots import as_matrix
from efhc_jax.network.split_lists import SplitLists

_FIRST = 3  # iterations whose links are checked
_MOST_DEVICES = 1_000  # of a network whose links are checked
_OPTIONAL = ("init", "draw", "fit", "room", "links", "problem")


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
    check_functions(source, dynamics, ("at",), optional=_OPTIONAL)
    declared(dynamics, source)


def drawn_by(name: str, dynamics: Dynamics, drawing: Drawing) -> Drawn:
    """The values that dynamics draw on the host; nothing if they draw none.

    Raises:
        ExperimentError: their function fails; the message has their name.
    """
    if dynamics.draw is None:
        return Drawn()
    with said_of_member(f"dynamics={name!r}", "draw"):
        drawn = dynamics.draw(drawing)
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
    wanted = {
        "links": (_shape_of_slots(network, snapshot), bool),
        "training": ((network.devices,), bool),
    }
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
    _check_links(source, dynamics, network, parameters)


def _shape_of_slots(network: NetworkValues, snapshot: Snapshot) -> tuple[int, ...]:
    if isinstance(snapshot.neighbors, SplitLists):
        return snapshot.neighbors.neighbors.shape
    return (network.adjacency if snapshot.neighbors is None else snapshot.neighbors).shape


def _check_links(source: str, dynamics: Dynamics, network: NetworkValues, parameters: Any) -> None:
    """Raise if a link of the first iterations has one end only, or leads to the device itself."""
    if network.devices > _MOST_DEVICES:
        return
    memory = first_memory(dynamics, network, parameters)
    for iteration in range(_FIRST):
        snapshot, memory = dynamics.at(network, parameters, memory, jnp.int32(iteration))
        links = np.asarray(as_matrix(snapshot.links, snapshot.neighbors))
        wrong = ""
        if links.diagonal().any():
            wrong = "links a device to itself"
        elif (links != links.T).any():
            one, other = np.argwhere(links & ~links.T)[0]
            wrong = f"links device {one} to {other}, but not {other} to {one}"
        if wrong:
            raise ExperimentError(
                f"{source}: at {wrong} in iteration {iteration}; links have two ends: use the "
                "same random number for both, as link_coins does"
            )
