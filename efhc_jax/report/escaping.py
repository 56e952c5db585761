"""Text and numbers from result files, made safe to print and to write as strict JSON."""

from __future__ import annotations

import math
import unicodedata
from typing import Any

_INVISIBLE = ("Zl", "Zp")  # separators of lines and paragraphs; all others are spaces


def printable(text: str, lines: bool = False) -> str:
    r"""The text with every control character and other invisible one as an escape sequence.

    Args:
        text: from anywhere.
        lines: whether line ends are kept.

    Example:
        >>> printable("\x1b[31mred\u202e")
        '\\x1b[31mred\\u202e'
    """
    if text.isprintable():
        return text
    kept = "\n" if lines else ""
    return "".join(one if one in kept or _is_visible(one) else _escaped(one) for one in text)


def plain(values: Any) -> Any:
    """Nested values as strict JSON has them: printable text, and words for numbers that are not finite.

    Example:
        >>> plain({"r": [50.0, float("inf"), float("nan")]})
        {'r': [50.0, 'inf', None]}
    """
    if isinstance(values, dict):
        return {printable(str(name)): plain(value) for name, value in values.items()}
    if isinstance(values, (list, tuple)):
        return [plain(value) for value in values]
    if isinstance(values, str):
        return printable(values, lines=True)
    if isinstance(values, float) and not math.isfinite(values):
        return None if math.isnan(values) else str(values)
    return values


def _is_visible(letter: str) -> bool:
    category = unicodedata.category(letter)
    return not (category.startswith("C") or category in _INVISIBLE)


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
