"""The values of a run: arrays that are arguments of the compiled program.

Runs that differ only in these share a compilation and a batch.
"""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Array, Bool, Float, Int, Key

from efhc_jax.data.splits import Shards
from efhc_jax.network.dynamics import NetworkValues


class RunValues(NamedTuple):
    """The values of one run; in a batch they are stacked along a new first axis."""

    key: Key[Array, ""]
    policy: Int[Array, ""]  # position among the policies of the program
    r: Float[Array, ""]
    learning_rate: tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]  # a, b, c
    budgets: tuple[Float[Array, "budget"], Float[Array, "budget"]]  # with their rounding errors
    bandwidth: Float[Array, "device"]  # b_i
    network: NetworkValues
    shards: Shards  # the samples of each device
    absent_train: Bool[Array, ""]  # whether devices that are absent take gradient steps
