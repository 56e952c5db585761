"""The type of all policies, and the quantities that they can use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jaxtyping import Array, Bool, Float, Int


class Situation(NamedTuple):
    """Quantities that a policy can use in iteration k.

    Attributes:
        iteration: k, from 0.
        deviation: e_i = n^(-1/q)·‖w_i − ŵ_i‖_q, the distance of a model from its last broadcast.
        decay: γ(k), the decay of the thresholds.
        r: scale of the thresholds.
        bandwidth: b_i = 1/ρ_i of each device.
        coin: a random number per device, uniform on [0, 1), new in every iteration.
        broadcasts: number of broadcasts of each device so far.
    """

    iteration: Int[Array, ""]
    deviation: Float[Array, "device"]
    decay: Float[Array, ""]
    r: Float[Array, ""]
    bandwidth: Float[Array, "device"]
    coin: Float[Array, "device"]
    broadcasts: Int[Array, "device"]


class Policy(NamedTuple):
    """A rule that decides which devices broadcast.

    Attributes:
        fires: function from the situation to one boolean per device, v_i(k). It is traced into the
            compiled program, so use array operations.
        uses_new_links: whether a new link is used even if neither end fires (Event 1).
        coordinated: whether a coordinator averages all models, P = 11ᵀ/m, instead of the network.
    """

    fires: Callable[[Situation], Bool[Array, "device"]]
    uses_new_links: bool = True
    coordinated: bool = False
