"""The reference of the command line, from what the program itself prints for `--help`.

A page that has the line `<!-- efhc-commands -->` gets a section for every command in its place.
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
_WIDE = "4000"  # columns, so that no description is wrapped


class Flag(NamedTuple):
    """A flag or an argument."""

    name: str  # with what it takes, as "--r FLOAT"
    description: str


class Help(NamedTuple):
    """What `--help` says."""

    usage: str
    paragraphs: list[str]
    groups: dict[str, list[Flag]]  # by the title of their box


def setup(app: Sphinx) -> dict[str, Any]:
    """Fill the page as it is read."""
    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def fill(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the commands into a page that asks for them."""
    if PLACE in source[0]:
        sections = (section(name, help_of(name)) for name in COMMANDS)
        source[0] = source[0].replace(PLACE, "\n".join(sections))


def help_of(name: str) -> Help:
    """Ask the program about one of its commands."""
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
    """Take the printed text apart: paragraphs, then boxes of flags.

    A flag begins at the left of its box. Its description follows after two spaces or more, on the same
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
    if line.startswith(" ") and flags:  # the description goes on
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
    """The text with no markup but for code between backticks."""
    return re.sub(r"([*_$<{|\\])", r"\\\1", text)
