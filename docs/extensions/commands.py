"""Reference of the command line, generated from the output of `--help`.

The line `<!-- efhc-commands -->` of a page is replaced by a section per command.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from typing import Any, NamedTuple
from unittest import mock

from sphinx.application import Sphinx

from efhc_jax.cli import COMMANDS, parse

PLACE = "<!-- efhc-commands -->"
_WIDE = "4000"  # columns, so that descriptions are not wrapped


class Flag(NamedTuple):
    """A flag or an argument."""

    name: str  # with the type of its value, as "--r FLOAT"
    description: str


class Help(NamedTuple):
    """Output of `--help`."""

    usage: str
    paragraphs: list[str]
    groups: dict[str, list[Flag]]  # by the title of their box


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the event handler."""
    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def fill(app: Sphinx, page: str, source: list[str]) -> None:
    """Insert the commands into the page that has the marker."""
    if PLACE in source[0]:
        sections = (section(name, help_of(name)) for name in COMMANDS)
        source[0] = source[0].replace(PLACE, "\n".join(sections))


def help_of(name: str) -> Help:
    """Run `efhc NAME --help` and parse its output."""
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")  # boxes are drawn in Unicode alone
    with (
        mock.patch.dict(os.environ, COLUMNS=_WIDE),
        contextlib.redirect_stdout(printed),
        contextlib.suppress(SystemExit),
    ):
        parse([name, "--help"])
    printed.seek(0)
    return read_help(printed.read())


def read_help(text: str) -> Help:
    """Parse the printed text: paragraphs, then boxes of flags.

    A flag starts at the left of its box. Its description follows after at least two spaces, on the same
    line or on the next ones.
    """
    paragraphs: list[str] = []
    groups: dict[str, list[Flag]] = {}
    for line in text.splitlines():
        if line.startswith("╭"):
            groups[line.strip("╭─╮ ")] = []
        elif line.startswith("│"):
            _read_line(line.strip("│").rstrip()[1:], list(groups.values())[-1])
        elif line.strip() and not line.startswith("╰"):
            paragraphs.append(line.strip())
    return Help(paragraphs[0].removeprefix("usage: "), paragraphs[1:], groups)


def _read_line(line: str, flags: list[Flag]) -> None:
    if line.startswith(" ") and flags:  # the description continues
        flags[-1] = flags[-1]._replace(description=f"{flags[-1].description} {line.strip()}".strip())
    elif re.match(r"--?\w|[A-Z]+( |$)", line):
        name, _, description = line.partition("  ")
        flags.append(Flag(name, description.strip()))


def section(name: str, about: Help) -> str:
    """A command as Markdown for Sphinx."""
    lines = [f"## efhc {name}", "", f"```{{program}} efhc {name}", "```", ""]
    lines += ["```text", about.usage, "```", ""]
    for paragraph in about.paragraphs:
        lines += [_escaped(paragraph), ""]
    for title, flags in about.groups.items():
        shown = [flag for flag in flags if not flag.name.startswith("-h,")]
        if shown and title not in ("options", "positional arguments"):
            lines += [f"```{{rubric}} {title.capitalize()}", "```", ""]
        for flag in shown:
            lines += [f"```{{option}} {flag.name}", _escaped(flag.description), "```", ""]
    return "\n".join(lines)


def _escaped(text: str) -> str:
    """Escape all markup except code in backticks."""
    return re.sub(r"([*_$<{|\\])", r"\\\1", text)
