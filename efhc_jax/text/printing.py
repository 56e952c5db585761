"""Display of text from elsewhere, such as paths and the names and attributes in files.

Terminals interpret escape sequences, rich `[red]` and `:on:`, and Matplotlib `$…$`. The functions here
show such text literally.
"""

from __future__ import annotations

import math
import sys
import unicodedata
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.text import Text

_SEPARATORS = ("Zl", "Zp")  # Unicode categories of line and paragraph separators


def printable(text: object, lines: bool = False) -> str:
    r"""The text with control characters and other invisible characters as escape sequences.

    Args:
        text: any text.
        lines: whether line ends are kept.

    Example:
        >>> print(printable("\x1b[31mred\u202e"))
        \x1b[31mred\u202e
    """
    text = str(text)
    if text.isprintable():
        return text
    kept = "\n" if lines else ""
    return "".join(one if one in kept or _is_visible(one) else _escaped(one) for one in text)


def _is_visible(character: str) -> bool:
    category = unicodedata.category(character)
    return not (category.startswith("C") or category in _SEPARATORS)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def print_text(text: object, lines: bool = False, file: TextIO | None = None) -> None:
    """Print the text with invisible characters escaped.

    Args:
        text: any text.
        lines: whether line ends are kept.
        file: the stream; standard output by default.
    """
    print(printable(text, lines), file=sys.stdout if file is None else file, flush=True)


def in_table(text: object, style: str = "") -> Text:
    """The text for a table of rich, which does not interpret it as markup.

    Example:
        >>> in_table("graph[red].npy").plain
        'graph[red].npy'
    """
    from rich.text import Text

    return Text(printable(text, lines=True), style)


def in_three_digits(value: float, like: float | None = None) -> str:
    """A number with three significant digits, or all those before the point.

    Args:
        value: the number.
        like: a number whose decimal places are used instead.

    Example:
        >>> [in_three_digits(value) for value in (12345.6, 12.345, 0.012345, 0.0)]
        ['12,346', '12.3', '0.0123', '0']
    """
    size = abs(value if like is None else like)
    if not 0 < size < math.inf:
        return f"{value:,.0f}"
    return f"{value:,.{max(0, 2 - math.floor(math.log10(size)))}f}"


def in_figure(text: object) -> str:
    r"""The text for Matplotlib, which does not interpret it as a formula.

    Example:
        >>> print(in_figure("$^$.npy"))
        \$^\$.npy
    """
    return printable(text, lines=True).replace("$", r"\$")
