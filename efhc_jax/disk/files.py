"""Files that are written completely or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from efhc_jax.errors import ExperimentError

_PART = ".efhc-part-"  # in the names of temporary files, before 16 random digits
_MOST_OF_NAME = 50  # characters of the original name in a temporary name, which has at most 255 bytes


@contextlib.contextmanager
def written_whole(path: str | Path) -> Iterator[Path]:
    """A temporary path next to `path`, moved there atomically when the block succeeds.

    Until then, an existing file stays as it is; the new one inherits its permissions. The contents are
    flushed to disk before this returns, so that they survive a crash of the process or the machine. The
    temporary name has a different suffix, so that it is not mistaken for a result.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beginning = f".{path.name[:_MOST_OF_NAME]}{_PART}"
    remove_leftovers(path.parent, beginning)
    part, handle = _new_part(path.parent, beginning)
    try:
        yield part
        with contextlib.suppress(OSError):  # no file to replace, or no permissions on this file system
            part.chmod(stat.S_IMODE(path.stat().st_mode))
        _to_disk(part)
        os.replace(part, path)
        _to_disk(path.parent)
    finally:
        part.unlink(missing_ok=True)
        os.close(handle)


def remove_leftovers(folder: Path, beginning: str = "") -> None:
    """Remove temporary files that killed processes left behind in a folder.

    A process locks the files that it writes, so a file that can be locked is not in use. On a file
    system without locks, nothing is removed.

    Args:
        folder: the folder; its subfolders are not searched.
        beginning: beginning of the temporary names; any by default.
    """
    names = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        names = [entry.name for entry in entries if _is_part(entry, beginning)]
    for name in names:
        with contextlib.suppress(OSError):
            handle = os.open(folder / name, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(folder / name)
            finally:
                os.close(handle)


def _is_part(entry: os.DirEntry[str], beginning: str) -> bool:
    return (
        entry.name.startswith(beginning or ".")
        and re.fullmatch(rf"\..+{re.escape(_PART)}[0-9a-f]{{16}}", entry.name) is not None
        and entry.is_file(follow_symlinks=False)
    )


def _new_part(folder: Path, beginning: str) -> tuple[Path, int]:
    """A new temporary file with default permissions, and its descriptor, locked by this process."""
    while True:
        part = folder / f"{beginning}{secrets.token_hex(8)}"
        handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            locked = True
        except BlockingIOError:  # `remove_leftovers` of another process locked it first
            locked = False
        except OSError:  # some network file systems have no locks
            locked = True
        if locked and part.exists():
            return part, handle
        os.close(handle)  # another process has removed it, or is about to


@contextlib.contextmanager
def output_folder(path: Path) -> Iterator[None]:
    """Create an output folder before the work begins, so that errors are found early.

    If the work fails before anything is written, the folders that were created for it are removed.
    """
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        try:
            path.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=path):
                pass
        except OSError as error:
            raise ExperimentError(
                f"out={path}: cannot be written to ({error.strerror}); give another folder"
            ) from None
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            for folder in made:
                folder.rmdir()
        raise


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
