"""Validation of schedules that users register."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from efhc_jax.errors import ExperimentError
from efhc_jax.members import declared, make_parameters
from efhc_jax.members.tracing import as_arrays, explained
from efhc_jax.schedules import SCHEDULES
from efhc_jax.schedules.base import Schedule, ScheduleValues, timed, value_at


def check_schedule(setting: str, name: str) -> None:
    """Raise unless a schedule can be traced and gives one number.

    Args:
        setting: the setting that names it, for the message.
        name: its name.

    Raises:
        ExperimentError: it cannot; the message has its name and what to do.
    """
    if SCHEDULES.is_built_in(name):
        return
    source, schedule = f"{setting}={name!r}", SCHEDULES[name]
    if not isinstance(schedule, Schedule):
        raise ExperimentError(
            f"{source}: is a {type(schedule).__name__}; register efhc_jax.Schedule(make)"
        )
    declared(schedule, source)
    own = as_arrays(schedule, make_parameters(schedule, {}))

    def value(values: ScheduleValues, iteration: Any) -> Any:
        return value_at(timed(schedule, 10), values, iteration)

    try:
        found = jax.eval_shape(value, ScheduleValues(jnp.zeros(()), own), jnp.int32(0))
    except Exception as error:  # whatever the user's function raises
        raise ExperimentError(f"{source}: {explained(error, 'make')}") from error
    if not hasattr(found, "shape") or found.shape or not jnp.issubdtype(found.dtype, jnp.floating):
        given = f"{found.dtype} {found.shape}" if hasattr(found, "shape") else type(found).__name__
        raise ExperimentError(f"{source}: gives {given} for an iteration; return one number")
