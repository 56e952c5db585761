"""Types and ranges of settings, and how a wrong value is shown."""

from __future__ import annotations

import math
import numbers
from typing import Any, NamedTuple

from efhc_jax.errors import ExperimentError

_LARGEST_INTEGER = 2**31 - 2  # whole numbers have 32 bits
_LARGEST = 1e30  # largest finite value: the program computes in 32 bits


class Limit(NamedTuple):
    """Type and range of a number."""

    kind: type
    low: float = -math.inf
    high: float = math.inf
    above_low: bool = False  # exclude the lower bound
    below_high: bool = False  # exclude the upper bound
    infinite: bool = False  # allow inf

    def check(self, name: str, value: Any) -> Any:
        """The value converted to the type; raise with what is allowed if it is out of range."""
        wanted = "a whole number" if self.kind is int else "a number"
        numbers_of_kind = numbers.Integral if self.kind is int else numbers.Real
        if not isinstance(value, numbers_of_kind) or isinstance(value, bool):
            raise ExperimentError(f"{name}={shown(value)}: give {f'{wanted} {self}'.strip()}")
        try:
            number = float(value)
        except OverflowError:
            number = math.nan
        inside = self.low < number if self.above_low else self.low <= number
        inside &= number < self.high if self.below_high else number <= self.high
        if math.isinf(number) and not self.infinite:
            inside = False
        if self.kind is float and abs(number) > _LARGEST and not self.infinite:  # infinite in 32 bits
            inside = False
        if not inside:
            raise ExperimentError(f"{name}={shown(value)}: out of range; give {wanted} {self}")
        return self.kind(value)

    def __str__(self) -> str:
        if self.kind is int and abs(self.high) >= _LARGEST_INTEGER:
            return "" if self.low <= -_LARGEST_INTEGER else f"of {self.low:g} or more"
        if math.isinf(self.low) and math.isinf(self.high):
            return "" if self.infinite else f"from {-_LARGEST:g} to {_LARGEST:g}"
        if math.isinf(self.low):
            return f"{'below' if self.below_high else 'of at most'} {self.high:g}"
        low = f"above {self.low:g}" if self.above_low else f"of {self.low:g} or more"
        if math.isinf(self.high):
            most = "" if self.kind is int else f", at most {_LARGEST:g}"
            return low + (" (inf is allowed)" if self.infinite else most)
        return f"{low}, {'below' if self.below_high else 'at most'} {self.high:g}"


def shown(value: Any) -> str:
    """A value for an error message: always short, and never itself an error."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number with thousands of digits, or deeply nested lists
        return f"({type(value).__name__} too long to show)"
    return text if len(text) <= 80 else f"{text[:79]}…"
