"""Lock that allows only one process at a time in an output folder."""

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
    """Lock a folder for this process by a file in it, which is removed at the end.

    The operating system releases the lock when the process ends, even if it is killed. A file that is
    left behind does no harm.

    Raises:
        ExperimentError: another process holds the lock.
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
                f"{folder}: cannot be locked ({error.strerror}); make sure no other process uses it",
                RuntimeWarning,
                stacklevel=4,
            )
        if _is_still(path, file):
            file.truncate(0)
            return file
        file.close()  # its owner has just removed it


def _is_still(path: Path, file: IO[str]) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
