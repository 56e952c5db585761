"""Files that are there in full or not at all, whatever happens while they are written."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from efhc_jax.errors import ExperimentError


@contextlib.contextmanager
def written_whole(path: str | Path) -> Iterator[Path]:
    """A temporary path beside `path`, moved there in one step when the block ends well.

    What was there before stays until then. The contents have reached the disk when this returns, so
    that what is reported as stored survives the end of the process and of the machine.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(
        dir=path.parent, prefix=f".{path.stem}-", suffix=f".part{path.suffix}"
    )
    os.close(handle)
    part = Path(name)
    try:
        yield part
        part.chmod(0o644)  # mkstemp's own mode would hide it from everyone else
        _to_disk(part)
        os.replace(part, path)
        _to_disk(path.parent)
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def output_folder(path: Path) -> Iterator[None]:
    """A folder to write to, made at once so that a bad one is known before the work begins.

    If the work fails before anything was written, a folder that was made for it goes again.
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
