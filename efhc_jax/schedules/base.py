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
            optax schedule, a function of k. It is traced into the compiled program; the number of
            iterations is a plain integer, as optax needs it.
        parameters: frozen dataclass of its own parameters, or None.
        law: function from the scale and the parameters to the `PowerDecay` that it is for all k, which
            is what the theorem speaks of; None if it is not one.
        uses_length: whether it depends on the number of iterations, which is then a part of the
            compiled program; otherwise it is given 0.
    """

    make: Callable[[Any, Any, Any], optax.Schedule]
    parameters: type | None = None
    law: Callable[[float, Any], PowerDecay] | None = None
    uses_length: bool = True


class ScheduleValues(NamedTuple):
    """The values of a schedule in one run."""

    scale: Float[Array, ""]
    parameters: Any


class Timed(NamedTuple):
    """A schedule, and the number of iterations that it depends on, or 0."""

    schedule: Schedule
    iterations: int


def timed(schedule: Schedule, iterations: int) -> Timed:
    """A schedule for a run of so many iterations."""
    return Timed(schedule, iterations if schedule.uses_length else 0)


def value_at(timed: Timed, values: ScheduleValues, iteration: Any) -> Any:
    """The value of a schedule in iteration k."""
    return timed.schedule.make(values.scale, timed.iterations, values.parameters)(iteration)
