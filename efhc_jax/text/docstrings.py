"""Docstrings of the fields of a class, which Python itself does not keep."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import textwrap
from typing import TypeVar

Kind = TypeVar("Kind", bound=type)


@functools.cache
def documentation(kind: type) -> dict[str, str]:
    """The docstring of each field of a dataclass, by name."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(definition, ast.ClassDef)
    return {
        field.target.id: " ".join(str(text.value.value).split())
        for field, text in itertools.pairwise(definition.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    }


def explained(kind: Kind) -> Kind:
    """Add the fields' docstrings to that of the class, so that `help` shows them."""
    try:
        texts = documentation(kind)
    except OSError:  # installed without its source
        return kind
    lines = [f"    {name}: {text}" for name, text in texts.items()]
    kind.__doc__ = "\n".join([inspect.cleandoc(kind.__doc__ or ""), "", "Attributes:", *lines])
    return kind
