"""The type of all schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import optax
    from jaxtyping import Array, Float


class PowerDecay(NamedTuple):
    """The law a / (b + k)^c, with the paper's defaults."""

    scale: float = 1.0  # a
    offset: float = 1.0  # b
    exponent: float = 0.5  # c

    def __str__(self) -> str:
        return f"{self.scale:g}/({self.offset:g}+k)^{self.exponent:g}"


class Schedule(NamedTuple):
    """A quantity that changes with the iterations, such as α(k).

    Attributes:
        make: function from the scale, the number of iterations of the run and the parameters to an
            optax schedule, a function of k. It is traced into the compiled program.
        parameters: frozen dataclass of its own parameters, or None.
        law: function from the scale and the parameters to the `PowerDecay` that it is for all k, which
            is what the theorem speaks of; None if it is not one.
    """

    make: Callable[[Any, Any, Any], optax.Schedule]
    parameters: type | None = None
    law: Callable[[float, Any], PowerDecay] | None = None


class ScheduleValues(NamedTuple):
    """The values of a schedule in one run."""

    scale: Float[Array, ""]
    iterations: Float[Array, ""]
    parameters: Any


def value_at(schedule: Schedule, values: ScheduleValues, iteration: Any) -> Any:
    """The value of a schedule in iteration k."""
    return schedule.make(*values)(iteration)
