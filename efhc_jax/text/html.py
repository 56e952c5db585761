"""Tables in HTML, for notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Any


def row(name: str, value: Any, text: str = "", strong: bool = False) -> str:
    """A row with a name and a value; the text is shown when the pointer is on it."""
    shown = html.escape(str(list(value) if isinstance(value, tuple) else value))
    shown = f"<strong>{shown}</strong>" if strong else shown
    return f'<tr title="{html.escape(text)}"><td>{html.escape(name)}</td><td>{shown}</td></tr>'


def table(rows: Iterable[str]) -> str:
    """A table of rows."""
    return f"<table><tbody>{''.join(rows)}</tbody></table>"
