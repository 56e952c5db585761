"""The type of all compressors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from jaxtyping import Array, Float

SETTINGS = ("ratio", "levels")  # that a compressor may use
Words = Callable[[Any], Any]  # from positions (count,) to random 32-bit words (count,)


class Compressor(NamedTuple):
    """A rule C that shortens the messages of every device, each on its own.

    The settings are any object with the attributes that it uses, of `ratio`, the share of the n entries
    that is kept, and `levels`, s, the number of levels of an absolute value above 0: traced arrays for
    `compress`, Python numbers for the others.

    Attributes:
        compress: function from the vectors, one row for each device, the settings and `words` to the
            compressed vectors, in the same shape, and the bits of a message of each device. `words`
            is a function from positions to random 32-bit words, which are new in every iteration. It is
            traced into the compiled program, so use array operations. NaN must remain in what it
            returns, because a diverged model is found by it.
        numbers: function from n and the settings to an upper bound of a message, in numbers of 32 bits.
        uses: the settings that it uses, of ratio and levels. Others are errors, because they would have
            no effect.
        contraction: function from n and the settings to an ω with E‖x − C(x)‖² ≤ (1 − ω)‖x‖² for all x.
    """

    compress: Callable[
        [Float[Array, "device *parameters"], Any, Words],
        tuple[Float[Array, "device *parameters"], Float[Array, "device"]],
    ]
    numbers: Callable[[int, Any], float]
    uses: tuple[str, ...]
    contraction: Callable[[int, Any], float]
