"""Text that others wrote, such as names and attributes in files, shown as it is.

Terminals obey escape sequences, rich takes `[red]` for a color, and Matplotlib `$…$` for a formula.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

# Control characters but tabs and ends of lines, and those that turn the direction of writing.
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: object) -> str:
    r"""The text, with the codes of characters that a terminal would obey.

    Example:
        >>> print(printable("\x1b[31mred"))
        \x1b[31mred
    """
    return _COMMANDS.sub(lambda found: ascii(found[0])[1:-1], str(text))


def in_table(text: object, style: str = "") -> Text:
    """The text for a table or a line of rich, which shows it without taking it for markup.

    Example:
        >>> in_table("graph[red].npy").plain
        'graph[red].npy'
    """
    from rich.text import Text

    return Text(printable(text), style)


def in_figure(text: object) -> str:
    r"""The text for Matplotlib, which shows it without taking it for a formula.

    Example:
        >>> print(in_figure("$^$.npy"))
        \$^\$.npy
    """
    return printable(text).replace("$", r"\$")
