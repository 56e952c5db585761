"""The values of a run: arrays that are arguments of the compiled program.

Runs that differ only in these share a compilation and a batch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jaxtyping import Array, Float, Int, Key

from efhc_jax.data.splits import Shards
from efhc_jax.network.dynamics.base import NetworkValues
from efhc_jax.schedules.base import ScheduleValues


class RunValues(NamedTuple):
    """The values of one run; in a batch they are stacked along a new first axis."""

    key: Key[Array, ""]
    policy: Int[Array, ""]  # position among the policies of the program
    policies: tuple[Any, ...]  # parameters of these policies
    r: Float[Array, ""]
    learning_rate: ScheduleValues  # of α
    threshold: ScheduleValues | None  # of γ; None where γ = α
    budgets: tuple[Float[Array, "budget"], Float[Array, "budget"]]  # with their rounding errors
    bandwidth: Float[Array, "device"]  # b_i
    network: NetworkValues
    dynamics: Any  # parameters of the dynamics
    shards: Shards  # the samples of each device
    method: Any = None  # parameters of the method
    optimizer: Any = None  # parameters of the optimizer
    participation: Any = None  # parameters of the participation
    taking_part: Any = None  # what the participation has drawn, a tree of arrays
