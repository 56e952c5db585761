"""Types of flags that several commands share."""

from __future__ import annotations

import ast
import inspect
import itertools
from pathlib import Path
from typing import Annotated

import tyro

OptionalFile = Annotated[Path | None, tyro.conf.arg(metavar="FILE")]
OptionalFolder = Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")]
Folder = Annotated[Path, tyro.conf.arg(metavar="FOLDER")]


def documentation(kind: type) -> dict[str, str]:
    """The text below each field of a dataclass, which Python itself does not keep."""
    (definition,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(definition, ast.ClassDef)
    return {
        field.target.id: " ".join(str(text.value.value).split())
        for field, text in itertools.pairwise(definition.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    }
