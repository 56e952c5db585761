"""What is known about an assumption, and how it is told."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

import numpy as np

Verdict = Literal["holds", "does not hold", "cannot be known from a finite run"]

UNKNOWN: Verdict = "cannot be known from a finite run"
ROUNDING = 1e-5  # relative; gradients, weights and losses are computed in 32 bits
_BLOCK_ELEMENTS = 1 << 20  # matrices and images are worked on in blocks of about this many numbers


class DecayFit(NamedTuple):
    """A curve as C·k^(−s), with its ends."""

    exponent: float  # s
    scale: float  # C
    first: float
    last: float


class Curve(NamedTuple):
    """Something over the iterations, and how fast it falls."""

    iterations: np.ndarray
    values: np.ndarray
    fit: DecayFit


class Finding(NamedTuple):
    """What is known about one assumption, or about the theorem itself.

    Attributes:
        name: the assumption, with its number in the paper.
        verdict: "holds", "does not hold" or "cannot be known from a finite run".
        figure: the numbers behind the verdict, in words.
        value: the numbers themselves; None where there is none.
        curve: for the theorem itself, what it says goes to 0.
    """

    name: str
    verdict: Verdict
    figure: str
    value: float | list[float] | None
    curve: Curve | None = None


def judged(name: str, holds: bool, figure: str, value: float) -> Finding:
    """What can be decided one way or the other."""
    return Finding(name, "holds" if holds else "does not hold", figure, value)


def blocks(count: int, size: int) -> Iterable[slice]:
    """Slices that cover `count` entries of `size` numbers, a block at a time."""
    step = max(1, _BLOCK_ELEMENTS // max(1, size))
    return (slice(start, start + step) for start in range(0, count, step))
