"""Validation of policies, and the selection of those that a program is compiled with."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Any

import jax
import jax.numpy as jnp

from efhc_jax.errors import ExperimentError
from efhc_jax.members import check_functions, declared, make_parameters
from efhc_jax.members.tracing import as_arrays, differs, explained
from efhc_jax.policies import POLICIES, local
from efhc_jax.policies.base import Policy, Situation, decide, first_memory


def compiled_policies(used: Collection[str], devices: int) -> tuple[Policy, ...]:
    """The policies of a compiled program, in the order of `POLICIES`.

    Those of the package without parameters and memory are always included, so that runs with any of them
    share the program. The others are included if they are used, and otherwise replaced by one that no
    run selects.

    Raises:
        ExperimentError: a policy that is used cannot be compiled.
    """
    chosen = []
    for name in POLICIES:
        built_in = POLICIES.is_built_in(name)
        if name in used:
            policy = POLICIES[name]
            if not built_in:
                check_policy(name, policy, devices)
        else:
            policy = local.POLICY
            if built_in and POLICIES[name].parameters is None and POLICIES[name].init is None:
                policy = POLICIES[name]
        chosen.append(policy)
    return tuple(chosen)


def check_policy(name: str, policy: Any, devices: int) -> None:
    """Raise unless a policy returns one boolean per device and can be traced.

    Raises:
        ExperimentError: the policy is invalid; the message has its name and what to do.
    """
    source = f"policy={name!r}"
    if not isinstance(policy, Policy):
        raise ExperimentError(f"{source}: is a {type(policy).__name__}; register efhc_jax.Policy(fires)")
    check_functions(source, policy, ("fires",), optional=("init",))
    declared(policy, source)
    now = _situation(devices)
    parameters = jax.eval_shape(lambda: as_arrays(policy, make_parameters(policy, {})))
    first = functools.partial(first_memory, policy)
    memory = _traced(source, "init", first, now, parameters)
    found = _traced(source, "fires", functools.partial(decide, policy), now, parameters, memory)
    if not (isinstance(found, tuple) and len(found) == 2):
        raise ExperimentError(
            f"{source}: fires gives {_in_words(found)}; with parameters or init, it must "
            "return two values: one boolean per device, and the memory for the next iteration"
        )
    fired, following = found
    if not isinstance(fired, jax.ShapeDtypeStruct) or (fired.shape, fired.dtype) != ((devices,), bool):
        raise ExperimentError(
            f"{source}: fires gives {_in_words(fired)}; return one boolean per device, bool {(devices,)}"
        )
    if found_other := differs(memory, following):
        raise ExperimentError(
            f"{source}: fires changes the memory that init gives, {found_other}; "
            "return the same structure, shapes and types"
        )


def _traced(source: str, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """The shapes that a function of a policy returns."""
    try:
        return jax.eval_shape(function, *arguments)
    except Exception as error:  # whatever the user's function raises
        first = str(error).splitlines()[0] if str(error) else ""
        if isinstance(error, AttributeError) and "Situation" in first:
            reason = f"{first.rstrip('.')}; it has {', '.join(Situation._fields)}"
        else:
            reason = explained(error, name)
        raise ExperimentError(f"{source}: {reason}") from error


def _in_words(found: Any) -> str:
    return f"{found.dtype} {found.shape}" if hasattr(found, "dtype") else type(found).__name__


def _situation(devices: int) -> Situation:
    """The arguments of a policy in a run, as shapes."""
    real = jnp.result_type(float)
    return Situation(
        iteration=jnp.zeros((), jnp.int32),
        deviation=jnp.zeros(devices, real),
        decay=jnp.zeros((), real),
        r=jnp.zeros((), real),
        bandwidth=jnp.ones(devices, real),
        coin=jnp.zeros(devices, real),
        broadcasts=jnp.zeros(devices, jnp.int32),
    )
