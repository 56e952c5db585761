"""Half a cosine wave from the first iteration of a run to its last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import optax

from efhc_jax.members import parameter
from efhc_jax.schedules.base import Schedule


@dataclass(frozen=True)
class Cosine:
    """Parameters of the schedule `cosine`."""

    final: float = parameter(0.0, "Value at the end of the run, relative to the first.", low=0, high=1)


def cosine(scale: Any, iterations: Any, parameters: Cosine) -> optax.Schedule:
    """α(k) = a·(f + (1 − f)·(1 + cos(π·k/K)) / 2) in a run of K iterations.

    Example:
        >>> schedule = cosine(2.0, 100, Cosine(final=0.5))
        >>> [float(schedule(k)) for k in (0, 50, 100)]
        [2.0, 1.5, 1.0]
    """
    wave = optax.cosine_decay_schedule(1.0, decay_steps=1, alpha=parameters.final)
    return lambda count: scale * wave(count / iterations)


SCHEDULE = Schedule(cosine, Cosine)
