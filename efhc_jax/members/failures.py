"""Errors in functions of members, said with the name of the member."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from efhc_jax.errors import EfhcError, ExperimentError, first_line

_PACKAGE = str(Path(__file__).parents[1])


def check_functions(
    source: str, member: Any, required: Sequence[str] = (), optional: Sequence[str] = ()
) -> None:
    """Raise unless fields of a member are functions.

    Args:
        source: the member, such as `graph='mine'`.
        member: the member.
        required: the fields that must be functions.
        optional: those that may also be None.

    Raises:
        ExperimentError: one of them is something else.
    """
    for name in (*required, *optional):
        value = getattr(member, name)
        if not callable(value) and not (name in optional and value is None):
            raise ExperimentError(f"{source}: {name}={value!r} is not a function")


@contextlib.contextmanager
def said_of_member(source: str, function: str) -> Iterator[None]:
    """Say with the name of the member what one of its functions raises.

    Args:
        source: the member, such as `graph='mine'`.
        function: the function, such as `draw`.

    Raises:
        ExperimentError: the function raised something that is not already in words.
    """
    try:
        yield
    except EfhcError:
        raise
    except Exception as error:  # whatever the user's function raises
        raise ExperimentError(f"{source}: {raised(error, function)}") from error


def raised(error: Exception, function: str) -> str:
    """The error of a function in words, with the line of the user's own code that it passed last."""
    first = first_line(error, "").rstrip(".")
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "site-packages" not in frame.filename and not frame.filename.startswith((_PACKAGE, "<"))
    ]
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{function} raises {type(error).__name__}: {first}{place}"
