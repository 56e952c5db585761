"""The type of all methods: what devices exchange, and how their models follow from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from jaxtyping import Array, Bool, Float, Int, UInt32

Memory = Any  # a tree of arrays


class Turn(NamedTuple):
    """The values that a method can use in iteration k.

    Attributes:
        iteration: k, from 0.
        weights: W(k).
        last_broadcast: Ŵ(k); for a method that keeps copies X̂(k), the copies that neighbours hold.
        fired: v_i(k), devices that broadcast.
        gradient: G(k), at W(k); 0 for devices that do not train now.
        training: devices that train now; None for all.
        learning_rate: α(k).
        trained: function from X to X + Δ, with Δ the change by local training from W(k): −α(k)·G(k) for
            a single step of gradient descent.
        hold: function from X to X, computed only once on a CPU. What is mixed is held anyway; a method
            that needs it again uses what `hold` returns, which saves a copy.
        mix: function from X to P(k)·X, over the links in use.
        mix_all: the same over all links of A(k).
        words: function from positions (count,) to random 32-bit words of this iteration.
    """

    iteration: Int[Array, ""]
    weights: Float[Array, "device *parameters"]
    last_broadcast: Float[Array, "device *parameters"]
    fired: Bool[Array, "device"]
    gradient: Float[Array, "device *parameters"]
    training: Bool[Array, "device"] | None
    learning_rate: Float[Array, ""]
    trained: Callable[[Float[Array, "device *parameters"]], Float[Array, "device *parameters"]]
    hold: Callable[[Float[Array, "device *parameters"]], Float[Array, "device *parameters"]]
    mix: Callable[[Float[Array, "device *parameters"]], Float[Array, "device *parameters"]]
    mix_all: Callable[[Float[Array, "device *parameters"]], Float[Array, "device *parameters"]]
    words: Callable[[Int[Array, "count"]], UInt32[Array, "count"]]


class Updated(NamedTuple):
    """The models after an iteration.

    Attributes:
        weights: W(k+1).
        memory: of the method, for the next iteration.
        copies: X̂(k+1), of a method that keeps copies; None for others.
        bits: of the message of each device, of a method that keeps copies; None for others, whose
            messages are whole.
    """

    weights: Float[Array, "device *parameters"]
    memory: Memory = ()
    copies: Float[Array, "device *parameters"] | None = None
    bits: Float[Array, "device"] | None = None


class Method(NamedTuple):
    """A rule for what devices exchange and how their models are updated.

    Attributes:
        update: function from a `Turn`, the parameters and the memory to `Updated`. It is traced into the
            compiled program.
        init: function from W(0) and the parameters to the memory before the first iteration, any tree
            of arrays; None for a method without memory.
        parameters: frozen dataclass of its own parameters, or None.
        arrays: number of arrays like W in a message.
        keeps_copies: whether devices keep copies of what their neighbours have sent. A device then
            decides after local training whether to broadcast, by the distance from its copy; only its
            own message is sent, to all neighbours; and at a new link both ends send their copies whole.
        always_sends: whether every device broadcasts in every iteration, whatever the policy.
        local_training: whether it takes steps of an optimizer, of which there may be several; otherwise
            it uses the gradient as it is.
        fixed_network: whether its theory needs the same P in all iterations.
        idle: function from the parameters to those that have no effect: a reason for each, by name.
        largest: function from n and the parameters to the largest size of a message, in numbers of 32
            bits; by default `arrays`·n.
    """

    update: Callable[[Turn, Any, Memory], Updated]
    init: Callable[[Float[Array, "device *parameters"], Any], Memory] | None = None
    parameters: type | None = None
    arrays: int = 1
    keeps_copies: bool = False
    always_sends: bool = False
    local_training: bool = False
    fixed_network: bool = False
    idle: Callable[[Any], dict[str, str]] | None = None
    largest: Callable[[int, Any], float] | None = None


def first_memory(method: Method, weights: Float[Array, "device *parameters"], parameters: Any) -> Memory:
    """The memory of a method before the first iteration; an empty tuple if it has none."""
    return () if method.init is None else method.init(weights, parameters)


def largest_message(method: Method, size: int, parameters: Any) -> float:
    """The largest size of a message for models of n parameters, in numbers of 32 bits."""
    if method.largest is None:
        return float(method.arrays * size)
    return method.largest(size, parameters)
