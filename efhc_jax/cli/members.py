"""Files of users that register members, named on the command line."""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import sys
from pathlib import Path

from efhc_jax.errors import ExperimentError, first_line


def load_members(arguments: list[str]) -> None:
    """Run the files of `--members FILE …`, before the flags are parsed: they may add some.

    Raises:
        ExperimentError: there is no such file, or it cannot be run.
    """
    among = False
    for word, following in itertools.pairwise([*arguments, "-"]):
        if word.startswith("-"):
            among = word == "--members"
            if among and following.startswith("-"):
                raise ExperimentError("members: no file; give one or more, or leave the flag out")
            if word.startswith("--members="):
                load_file(Path(word.removeprefix("--members=")))
        elif among:
            load_file(Path(word))


def load_file(path: Path) -> None:
    """Run a Python file that registers members.

    Raises:
        ExperimentError: there is no such file, or it cannot be run.
    """
    if path.suffix != ".py":
        raise ExperimentError(
            f"members={path}: is not a Python file, whose name ends in .py; "
            "give other files before --members"
        )
    if not path.is_file():
        raise ExperimentError(f"members={path}: no such file; give a Python file that registers members")
    name = f"members_{path.stem}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    folder = str(path.resolve().parent)
    if folder not in sys.path:  # for modules next to the file, as Python has it for a script
        sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever the file raises
        del sys.modules[name]
        reason = f"{type(error).__name__}: {first_line(error, '')}".rstrip(": ")
        raise ExperimentError(f"members={path}: cannot be run ({reason})") from error
