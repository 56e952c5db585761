"""The type of all policies, and the quantities that they can use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

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

    All functions are traced into the compiled program, so use array operations.

    Attributes:
        fires: function from the situation to one boolean per device, v_i(k). With `parameters` or
            `init`, a function from the situation, the parameters and the memory to these booleans and
            the memory for the next iteration.
        uses_new_links: whether a new link is used even if neither end fires (Event 1).
        coordinated: whether a coordinator averages all models, P = 11ᵀ/m, instead of the network.
        parameters: frozen dataclass of its own parameters, or None.
        init: function from the situation of the first iteration and the parameters to the memory, any
            tree of arrays; None for a policy without memory.
        uses: the shared settings that it uses, of r, norm_order and threshold_schedule; None if
            unknown. Others are errors, because they would have no effect.
    """

    fires: Callable[..., Any]
    uses_new_links: bool = True
    coordinated: bool = False
    parameters: type | None = None
    init: Callable[[Situation, Any], Any] | None = None
    uses: tuple[str, ...] | None = None


def first_memory(policy: Policy, now: Situation, parameters: Any) -> Any:
    """The memory of a policy before the first iteration; an empty tuple if it has none."""
    return () if policy.init is None else policy.init(now, parameters)


def decide(
    policy: Policy, now: Situation, parameters: Any, memory: Any
) -> tuple[Bool[Array, "device"], Any]:
    """The devices that fire, and the memory for the next iteration."""
    if policy.parameters is None and policy.init is None:
        return policy.fires(now), memory
    return policy.fires(now, parameters, memory)
