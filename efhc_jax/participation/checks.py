"""Validation of rules of participation that users register."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from efhc_jax.errors import ExperimentError
from efhc_jax.members import check_functions, declared, said_of_member
from efhc_jax.members.tracing import explained
from efhc_jax.network.dynamics.base import Snapshot
from efhc_jax.network.slots import Network, as_matrix, devices_of
from efhc_jax.participation.base import (
    Drawing,
    Participation,
    Values,
    links_taking_part,
)

_FIRST = 3  # iterations whose links are checked
_MOST_DEVICES = 1_000  # of a network whose links are checked
_FUNCTIONS = ("draw", "devices", "links", "fit")


def check_participation(name: str, participation: Any) -> None:
    """Raise unless it is a `Participation` of functions, with valid parameters.

    Raises:
        ExperimentError: it is not; the message has its name and what to do.
    """
    source = f"participation={name!r}"
    if not isinstance(participation, Participation):
        raise ExperimentError(
            f"{source}: is a {type(participation).__name__}; register efhc_jax.Participation(…)"
        )
    check_functions(source, participation, optional=_FUNCTIONS)
    declared(participation, source)


def values_of(name: str, participation: Participation, drawing: Drawing) -> Values:
    """The values that a rule draws on the host; an empty tuple if it draws none.

    Raises:
        ExperimentError: its function fails; the message has its name.
    """
    if participation.draw is None:
        return ()
    with said_of_member(f"participation={name!r}", "draw"):
        return participation.draw(drawing)


def check_masks(
    name: str,
    participation: Participation,
    values: Values,
    parameters: Any,
    key: Key[Array, ""],
    network: Snapshot,
) -> None:
    """Raise unless a rule can be traced, and gives a boolean per device and per slot.

    Raises:
        ExperimentError: it does not; the message has its name and what to do.
    """
    source = f"participation={name!r}"
    devices = devices_of(Network(network.links, network.neighbors))
    given = (values, parameters, key, jnp.int32(0), network)
    _check_mask(source, "devices", participation.devices, given, (devices,))
    _check_mask(source, "links", participation.links, given, network.links.shape)
    if devices > _MOST_DEVICES:
        return
    for iteration in range(_FIRST):
        found = links_taking_part(participation, *given[:3], jnp.int32(iteration), network)
        if found is not None:
            _check_ends(
                source, np.asarray(as_matrix(found & network.links, network.neighbors)), iteration
            )


def _check_mask(
    source: str,
    name: str,
    function: Callable[..., Any] | None,
    given: tuple[Any, ...],
    shape: tuple[int, ...],
) -> None:
    """Raise unless a function gives booleans of this shape, or None."""
    if function is None:
        return
    try:
        found = jax.eval_shape(function, *given)
    except Exception as error:  # whatever the user's function raises
        raise ExperimentError(f"{source}: {explained(error, name)}") from error
    if found is None:
        return
    if not isinstance(found, jax.ShapeDtypeStruct) or (found.shape, found.dtype) != (shape, bool):
        kind = f"{found.dtype} {found.shape}" if hasattr(found, "dtype") else type(found).__name__
        raise ExperimentError(f"{source}: {name} gives {kind}; return bool {shape}, or None for all")


def _check_ends(source: str, links: np.ndarray, iteration: int) -> None:
    """Raise if a link takes part at one end only."""
    if (links != links.T).any():
        one, other = np.argwhere(links & ~links.T)[0]
        raise ExperimentError(
            f"{source}: links gives the link from device {one} to {other}, but not {other} to {one}, in "
            f"iteration {iteration}; links have two ends: use the same random number for both, as "
            "link_coins does"
        )
