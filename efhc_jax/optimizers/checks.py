"""Validation of optimizers that users register."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from efhc_jax.errors import EfhcError, ExperimentError
from efhc_jax.members import check_functions, declared, make_parameters
from efhc_jax.members.tracing import as_arrays, check_leaves_out_host, differs, explained
from efhc_jax.optimizers.base import Optimizer, direction, start

_DEVICES = 2  # of the models that an optimizer is tried on
_STEPS = 3  # the first has length 0 in a schedule that begins there


def check_optimizer(
    name: str, optimizer: Any, parameters: Any = None, shape: tuple[int, ...] = (5,)
) -> None:
    """Raise unless an optimizer gives directions without learning rate, and can be traced.

    Args:
        name: its name.
        optimizer: the optimizer.
        parameters: of the run; by default those that it declares.
        shape: of the parameters of a device.

    Raises:
        ExperimentError: it does not; the message has its name and what to do.
    """
    source = f"optimizer={name!r}"
    if not isinstance(optimizer, Optimizer):
        raise ExperimentError(
            f"{source}: is a {type(optimizer).__name__}; register efhc_jax.Optimizer(make), where make "
            "gives an optax transformation"
        )
    check_functions(source, optimizer, ("make",))
    declared(optimizer, source)
    given = make_parameters(optimizer, {}) if parameters is None else parameters
    values = as_arrays(optimizer, given)
    _check_update(source, optimizer, values, shape)
    directions = _said(source, "update", _first_directions, optimizer, values, shape)
    if (directions.reshape(_STEPS, -1) < 0).all(axis=1).any():
        raise ExperimentError(
            f"{source}: its updates are already steps against the gradient; leave out the learning rate "
            "and its sign, which learning_rate stands for, as in optax.scale_by_adam()"
        )


def _check_update(source: str, optimizer: Optimizer, parameters: Any, shape: tuple[int, ...]) -> None:
    """Raise unless the transformation of one device keeps all shapes and types, and the host out."""
    row = jax.ShapeDtypeStruct(shape, jnp.result_type(float))

    def make(parameters: Any) -> optax.GradientTransformation:
        made = optimizer.make(parameters)
        if isinstance(made, optax.GradientTransformation):
            return made
        raise ExperimentError(
            f"{source}: make gives a {type(made).__name__}; "
            "return an optax transformation, such as optax.scale_by_adam()"
        )

    def only_make(parameters: Any) -> tuple[()]:
        make(parameters)
        return ()

    def init(parameters: Any, weights: Any) -> Any:
        return make(parameters).init(weights)

    def update(parameters: Any, gradient: Any, state: Any, weights: Any) -> Any:
        return make(parameters).update(gradient, state, weights)

    _said(source, "make", jax.eval_shape, only_make, parameters)
    state = _said(source, "init", jax.eval_shape, init, parameters, row)
    tracing = jax.make_jaxpr(update, return_shape=True)
    program, found = _said(source, "update", tracing, parameters, row, state, row)
    if not (isinstance(found, tuple) and len(found) == 2):
        raise ExperimentError(
            f"{source}: update gives a {type(found).__name__}; return the updates and the new state"
        )
    updates, following = found
    if other := differs(row, updates):
        raise ExperimentError(
            f"{source}: update gives {other}; return the shape and type of the gradient"
        )
    if other := differs(state, following):
        raise ExperimentError(
            f"{source}: update changes the state that init gives, {other}; "
            "return the same structure, shapes and types"
        )
    check_leaves_out_host(source, "update calls Python in every step", program.jaxpr)


def _first_directions(
    optimizer: Optimizer, parameters: Any, shape: tuple[int, ...]
) -> Float[Array, "step device *parameters"]:
    """The directions of the first steps for a gradient of ones."""

    @jax.jit
    def found(parameters: Any, ones: Array, everybody: Array) -> Array:
        state, directions = start(optimizer, parameters, ones), []
        for _ in range(_STEPS):
            one, state = direction(optimizer, parameters, state, ones, ones, everybody)
            directions.append(one)
        return jnp.stack(directions)

    return found(parameters, jnp.ones((_DEVICES, *shape)), jnp.ones(_DEVICES, bool))


def _said(source: str, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function that calls one of an optimizer; what that raises has its name."""
    try:
        return function(*arguments)
    except EfhcError:
        raise
    except Exception as error:  # whatever the user's function raises
        raise ExperimentError(f"{source}: {explained(error, name)}") from error
