"""Files that are written completely or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from efhc_jax.errors import ExperimentError


@contextlib.contextmanager
def written_whole(path: str | Path) -> Iterator[Path]:
    """A temporary path next to `path`, moved there atomically when the block succeeds.

    A previous file stays until then. The contents are on disk when this returns, so that a result that
    is reported as stored survives a crash of the process or the machine.
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
        part.chmod(0o644)  # with the mode of mkstemp, other users could not read it
        _to_disk(part)
        os.replace(part, path)
        _to_disk(path.parent)
    finally:
        part.unlink(missing_ok=True)


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
