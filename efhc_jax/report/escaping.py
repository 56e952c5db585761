"""Text and numbers from result files as strict JSON."""

from __future__ import annotations

import math
from typing import Any

from efhc_jax.text.printing import printable


def plain(values: Any) -> Any:
    """Nested values for strict JSON: text is made printable, infinities become strings, and NaN None.

    Example:
        >>> plain({"r": [50.0, float("inf"), float("nan")]})
        {'r': [50.0, 'inf', None]}
    """
    if isinstance(values, dict):
        return {printable(name): plain(value) for name, value in values.items()}
    if isinstance(values, (list, tuple)):
        return [plain(value) for value in values]
    if isinstance(values, str):
        return printable(values, lines=True)
    if isinstance(values, float) and not math.isfinite(values):
        return None if math.isnan(values) else str(values)
    return values
