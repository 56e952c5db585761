"""Findings about the theorem's assumptions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

import numpy as np

Verdict = Literal["holds", "does not hold", "cannot be known from a finite run"]

UNKNOWN: Verdict = "cannot be known from a finite run"
ROUNDING = 1e-5  # relative; gradients, weights and losses are computed in 32 bits
_BLOCK_ELEMENTS = 1 << 20  # matrices and images are processed in blocks of about this many numbers


class DecayFit(NamedTuple):
    """A fit C·k^(−s) of a curve, with the curve's first and last values."""

    exponent: float  # s
    scale: float  # C
    first: float
    last: float


class Curve(NamedTuple):
    """A quantity over iterations, with a fit of its decay."""

    iterations: np.ndarray
    values: np.ndarray
    fit: DecayFit


class Finding(NamedTuple):
    """The result of checking one assumption, or the theorem itself.

    Attributes:
        name: the assumption, with its number in the paper.
        verdict: "holds", "does not hold" or "cannot be known from a finite run".
        figure: the measured values, in words.
        value: the measured values; None if there are none.
        curve: for the theorem itself, the quantity that converges to 0.
    """

    name: str
    verdict: Verdict
    figure: str
    value: float | list[float] | None
    curve: Curve | None = None


def judged(name: str, holds: bool, figure: str, value: float) -> Finding:
    """A finding that either holds or does not."""
    return Finding(name, "holds" if holds else "does not hold", figure, value)


def blocks(count: int, size: int) -> Iterable[slice]:
    """Slices that cover `count` entries of `size` numbers each, block by block."""
    step = max(1, _BLOCK_ELEMENTS // max(1, size))
    return (slice(start, start + step) for start in range(0, count, step))
