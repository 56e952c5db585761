"""Compact encoding of values, to keep the page small."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

_DIGITS = 5  # significant digits of numbers in the page
_MISSING = 0xFFFF  # code of NaN


def numbers(values: ArrayLike) -> Any:
    """Nested lists of rounded numbers; None for values that are not finite.

    Example:
        >>> numbers([[1.0, 0.333333333], [float("nan"), 12345678]])
        [[1, 0.33333], [None, 12346000]]
    """
    array = np.asarray(values)
    if array.ndim == 0:
        value = float(array)
        if not np.isfinite(value):
            return None
        short = float(f"{value:.{_DIGITS}g}")
        return int(short) if short.is_integer() else short
    return [numbers(part) for part in array]


def packed_bits(values: ArrayLike) -> str:
    """Booleans, row by row, eight per byte from the lowest bit, as base64."""
    return _base64(np.packbits(np.asarray(values, bool).ravel(), bitorder="little"))


def packed_shares(values: ArrayLike) -> str:
    """Numbers from 0 to 1, row by row, as base64 of 16-bit integers; NaN is the largest."""
    array = np.asarray(values, float).ravel()
    scaled = np.where(np.isnan(array), _MISSING, np.rint(np.clip(array, 0, 1) * (_MISSING - 1)))
    return _base64(scaled.astype("<u2"))


def stretches(steps: int, most: int) -> np.ndarray:
    """The bounds of at most `most` intervals of iterations, of equal length except for the last.

    Example:
        >>> stretches(10, 4).tolist()
        [0, 3, 6, 9, 10]
    """
    length = max(1, -(-steps // max(1, most)))
    return np.append(np.arange(0, steps, length), steps)


def some_of(count: int, most: int) -> np.ndarray:
    """At most `most` evenly spaced indices below `count`, including the first and the last.

    Example:
        >>> some_of(9, 3).tolist(), some_of(2, 3).tolist()
        ([0, 4, 8], [0, 1])
    """
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))


def _base64(array: np.ndarray) -> str:
    return base64.b64encode(array.tobytes()).decode("ascii")
