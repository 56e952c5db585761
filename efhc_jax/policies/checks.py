"""Validation of policies, and the selection of those that a program is compiled with."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import jax
import jax.numpy as jnp

from efhc_jax.errors import ExperimentError, first_line
from efhc_jax.policies import BUILT_IN, POLICIES, local
from efhc_jax.policies.base import Policy, Situation


def compiled_policies(used: Collection[str], devices: int) -> tuple[Policy, ...]:
    """The policies of a compiled program, in the order of `POLICIES`.

    Those of the package are always included, so that runs with any of them share the program. Custom
    policies are included if they are used; the others are replaced by one that no run selects.

    Raises:
        ExperimentError: a policy that is used cannot be compiled.
    """
    built_in = dict(BUILT_IN)
    chosen = []
    for name, policy in POLICIES.items():
        if name in used and policy is not built_in.get(name):
            check_policy(name, policy, devices)
        elif policy is not built_in.get(name):
            policy = local.POLICY
        chosen.append(policy)
    return tuple(chosen)


def check_policy(name: str, policy: Policy, devices: int) -> None:
    """Raise unless a policy returns one boolean per device and can be traced.

    Raises:
        ExperimentError: the policy is invalid; the message has its name and what to do.
    """
    if not isinstance(policy, Policy):
        raise ExperimentError(
            f"policy={name!r}: is a {type(policy).__name__}; register efhc_jax.Policy(fires)"
        )
    if not callable(policy.fires):
        raise ExperimentError(f"policy={name!r}: fires={policy.fires!r} is not a function")
    try:
        found = jax.eval_shape(policy.fires, _situation(devices))
    except Exception as error:  # whatever the user's function raises
        raise ExperimentError(f"policy={name!r}: {_explained(error)}") from error
    if not isinstance(found, jax.ShapeDtypeStruct) or (found.shape, found.dtype) != ((devices,), bool):
        given = f"{found.dtype} {found.shape}" if hasattr(found, "dtype") else type(found).__name__
        raise ExperimentError(
            f"policy={name!r}: fires gives {given}; return one boolean per device, bool {(devices,)}"
        )


def _situation(devices: int) -> Situation:
    """The arguments of a policy in a run, as shapes."""
    real = jnp.result_type(float)
    number: Any = jax.ShapeDtypeStruct((), real)
    for_each: Any = jax.ShapeDtypeStruct((devices,), real)
    iteration: Any = jax.ShapeDtypeStruct((), jnp.int32)
    broadcasts: Any = jax.ShapeDtypeStruct((devices,), jnp.int32)
    return Situation(
        iteration=iteration,
        deviation=for_each,
        decay=number,
        r=number,
        bandwidth=for_each,
        coin=for_each,
        broadcasts=broadcasts,
    )


def _explained(error: Exception) -> str:
    first = first_line(error, "").rstrip(".")
    if isinstance(error, jax.errors.TracerArrayConversionError):
        return "fires calls NumPy on a value of the running program; use jax.numpy"
    if isinstance(error, jax.errors.ConcretizationTypeError):
        return (
            "fires needs a concrete value during compilation, as Python's if, and, or, not do; "
            "use jnp.where, &, | and ~"
        )
    if isinstance(error, AttributeError) and "Situation" in first:
        return f"{first}; it has {', '.join(Situation._fields)}"
    return f"fires raises {type(error).__name__}: {first}"
