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
_MOST_OF_NAME = 50  # characters of a file's name in that of its temporary file: 255 bytes is the limit


@contextlib.contextmanager
def written_whole(path: str | Path) -> Iterator[Path]:
    """A temporary path next to `path`, moved there atomically when the block succeeds.

    What was there before stays until then, and its permissions afterwards. The contents have reached the
    disk when this returns, so that what is reported as stored survives the end of the process and of the
    machine. The temporary name has not the ending of `path`, so that nothing takes it for a result.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beginning = f".{path.name[:_MOST_OF_NAME]}{_PART}"
    remove_leftovers(path.parent, beginning)
    part, handle = _new_part(path.parent, beginning)
    try:
        yield part
        with contextlib.suppress(OSError):  # there was none, or the file system has no permissions
            part.chmod(stat.S_IMODE(path.stat().st_mode))
        _to_disk(part)
        os.replace(part, path)
        _to_disk(path.parent)
    finally:
        part.unlink(missing_ok=True)
        os.close(handle)


def remove_leftovers(folder: Path, beginning: str = "") -> None:
    """Remove what killed processes left behind in a folder while they wrote files to it.

    A process locks what it writes, so what can be locked is nobody's. Where the file system has no
    locks, everything stays.

    Args:
        folder: only what is directly in it.
        beginning: of the temporary names; any by default.
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
    """A new temporary file with the permissions that the umask leaves, locked by this process."""
    while True:
        part = folder / f"{beginning}{secrets.token_hex(8)}"
        handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        with contextlib.suppress(OSError):  # some network file systems have no locks
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if part.exists():
            return part, handle
        os.close(handle)  # it was taken for a leftover before it was locked


@contextlib.contextmanager
def output_folder(path: Path) -> Iterator[None]:
    """An output folder, created before the work begins so that errors are found early.

    If the work fails before anything is written, a folder that was created for it is removed.
    """
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        try:
            path.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=path):
                pass
            remove_leftovers(path)
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
