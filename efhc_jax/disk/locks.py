"""Lock that allows one process at a time to write to an output folder."""

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

from efhc_jax.disk.files import remove_leftovers
from efhc_jax.errors import ExperimentError

NAME = ".efhc.lock"
_MARK = "efhc: held by process "  # beginning of a lock file, which tells it from other files


@contextlib.contextmanager
def held(folder: Path, field: str = "out") -> Iterator[None]:
    """Lock a folder for this process with a file in it, which is removed at the end.

    The operating system releases the lock when the process ends, even if it is killed; the lock file
    that it leaves behind does not block anyone. Any other file of that name is left as it is. Once the
    folder is locked, temporary files that killed processes left in it are removed.

    Args:
        folder: an existing folder.
        field: name of the folder's setting in messages.

    Raises:
        ExperimentError: another process holds the lock, or a file of that name is not a lock file.
    """
    path = folder / NAME
    file = _take(f"{field}={folder}", path)
    try:
        os.ftruncate(file, 0)
        os.pwrite(file, f"{_MARK}{os.getpid()} on {platform.node()}".encode(), 0)
        remove_leftovers(folder)
        yield
    finally:
        with contextlib.suppress(OSError):
            if _is_still(path, file):
                path.unlink()
        os.close(file)


def _take(what: str, path: Path) -> int:
    """Descriptor of the lock file, after locking it and checking that it is one."""
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
        os.close(file)  # its previous holder has just removed it


def _open(what: str, path: Path) -> int:
    """Open or create the lock file, without following a link or waiting for the other end of a pipe."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise _not_ours(what) from None
        raise ExperimentError(
            f"{what}: its lock file {NAME} cannot be opened ({error.strerror}); "
            "give another folder, or remove this file if no process uses the folder"
        ) from None


def _lock(what: str, file: int) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = _content(file).removeprefix(_MARK) if _is_ours(file) else ""
        raise ExperimentError(
            f"{what}: another process{f' ({owner})' * bool(owner)} is using it; "
            "wait for it, or give another folder"
        ) from None
    except OSError as error:  # some network file systems have no locks
        warnings.warn(
            f"{what}: cannot be locked ({error.strerror}); make sure that no other process uses it",
            RuntimeWarning,
            stacklevel=5,
        )


def _is_ours(file: int) -> bool:
    """Whether it is a regular file with one name, either empty or written by `held`."""
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
