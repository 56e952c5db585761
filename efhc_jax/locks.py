"""One process at a time in an output folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from efhc_jax.errors import ExperimentError

NAME = ".lock"


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold a folder for this process alone, by a file in it that goes again at the end.

    The system frees the lock when its process ends, however it ends. A file that a killed process left
    behind is in nobody's way.

    Raises:
        ExperimentError: another process holds it.
    """
    path = folder / NAME
    file = _take(folder, path)
    try:
        file.write(f"{os.getpid()} on {platform.node()}")
        file.flush()
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
        file.close()


def _take(folder: Path, path: Path) -> IO[str]:
    while True:
        file = path.open("a+", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            owner = " ".join(file.read(200).split())
            file.close()
            raise ExperimentError(
                f"out={folder}: another process{f' ({owner})' * bool(owner)} is working there; "
                "wait for it, or give another folder"
            ) from None
        except OSError as error:  # some network file systems have no locks
            warnings.warn(
                f"{folder}: cannot be locked ({error.strerror}); let no other process work there",
                RuntimeWarning,
                stacklevel=4,
            )
        if _is_still(path, file):
            file.truncate(0)
            return file
        file.close()  # whoever had it has just removed it


def _is_still(path: Path, file: IO[str]) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
