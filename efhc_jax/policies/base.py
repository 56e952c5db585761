"""What a policy is: who broadcasts now, decided from what a device can see."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jaxtyping import Array, Bool, Float, Int


class Situation(NamedTuple):
    """What the devices can look at in iteration k, before they decide.

    Attributes:
        iteration: k, from 0.
        deviation: e_i = n^(-1/q)·‖w_i − ŵ_i‖_q, how far a model has moved since its last broadcast.
        decay: γ(k), by which the thresholds shrink over time.
        r: scale of the thresholds.
        bandwidth: b_i = 1/ρ_i of each device.
        coin: a random number for each device, uniform on [0, 1), new in every iteration.
        broadcasts: how often each device has broadcast so far.
    """

    iteration: Int[Array, ""]
    deviation: Float[Array, "device"]
    decay: Float[Array, ""]
    r: Float[Array, ""]
    bandwidth: Float[Array, "device"]
    coin: Float[Array, "device"]
    broadcasts: Int[Array, "device"]


class Policy(NamedTuple):
    """One way to decide who broadcasts.

    Attributes:
        fires: from the situation to one boolean a device, v_i(k). It is traced into the compiled
            program, so it must be made of array operations.
        uses_new_links: whether a link that has just appeared is used although no end fired
            (Event 1).
        coordinated: whether a coordinator averages all models, P = 11ᵀ/m, in place of the network.
    """

    fires: Callable[[Situation], Bool[Array, "device"]]
    uses_new_links: bool = True
    coordinated: bool = False
