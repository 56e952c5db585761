"""What a policy is: who broadcasts now, decided from what a device can see."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jaxtyping import Array, Bool, Float, Int


class Situation(NamedTuple):
    """What the devices can look at in iteration k, before they decide."""

    iteration: Int[Array, ""]  # k
    deviation: Float[Array, "device"]  # e_i = n^(-1/q)·‖w_i − ŵ_i‖_q
    decay: Float[Array, ""]  # γ(k)
    r: Float[Array, ""]
    bandwidth: Float[Array, "device"]  # b_i = 1/ρ_i
    coin: Float[Array, "device"]  # uniform on [0, 1), new in every iteration
    broadcasts: Int[Array, "device"]  # how often each device has broadcast so far


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
