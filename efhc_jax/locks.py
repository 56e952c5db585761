"""Lock that allows only one process at a time in an output folder."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import platform
import stat
import warnings
from collections.abc import Iterator
from pathlib import Path

from efhc_jax.errors import ExperimentError

NAME = ".efhc.lock"
_MARK = "efhc: held by process "  # what the file begins with, so that no other is taken for it


@contextlib.contextmanager
def held(folder: Path, field: str = "out") -> Iterator[None]:
    """Lock a folder for this process by a file in it, which is removed at the end.

    The system frees the lock when its process ends, however it ends. A file that a killed process left
    behind is in nobody's way. Anything else of that name is left as it is.

    Args:
        folder: it must be there.
        field: what messages call it.

    Raises:
        ExperimentError: another process holds it, or something else has the name of the file.
    """
    path = folder / NAME
    file = _take(f"{field}={folder}", path)
    try:
        os.ftruncate(file, 0)
        os.pwrite(file, f"{_MARK}{os.getpid()} on {platform.node()}".encode(), 0)
        yield
    finally:
        with contextlib.suppress(OSError):
            if _is_still(path, file):
                path.unlink()
        os.close(file)


def _take(what: str, path: Path) -> int:
    """A descriptor of the lock file, which is locked and is ours or empty."""
    while True:
        file = _open(what, path)
        try:
            _lock(what, file)
            if _is_still(path, file):
                if not _is_ours(file):
                    raise _not_ours(what)
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)  # whoever had it has just removed it


def _open(what: str, path: Path) -> int:
    """The file itself, never what a link points to, and without waiting for a pipe's other end."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise _not_ours(what) from None
        raise ExperimentError(
            f"{what}: its lock file {NAME} cannot be opened ({error.strerror}); "
            "give another folder, or remove this file if no process works there"
        ) from None


def _lock(what: str, file: int) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = _content(file).removeprefix(_MARK) if _is_ours(file) else ""
        raise ExperimentError(
            f"{what}: another process{f' ({owner})' * bool(owner)} is working there; "
            "wait for it, or give another folder"
        ) from None
    except OSError as error:  # some network file systems have no locks
        warnings.warn(
            f"{what}: cannot be locked ({error.strerror}); let no other process work there",
            RuntimeWarning,
            stacklevel=5,
        )


def _is_ours(file: int) -> bool:
    """Whether we wrote the file, or nobody has written to it and it has no other name."""
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        return False
    return found.st_size == 0 or _content(file).startswith(_MARK)


def _content(file: int) -> str:
    text = os.pread(file, 200, 0).decode(errors="replace")
    return "".join(character for character in text if character.isprintable())


def _not_ours(what: str) -> ExperimentError:
    return ExperimentError(
        f"{what}: {NAME} in it is not a lock file of efhc; move it away, or give another folder"
    )


def _is_still(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(file))
    except FileNotFoundError:
        return False
