"""The four arrays of a dataset in one NumPy archive: written whole or not at all, never pickled."""

import contextlib
import os
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from efhc_jax.data.idx import IdxSet, Pixels, damaged


def read_npz(path: Path) -> list[Pixels]:
    """Read the four arrays; their contents are for the caller to verify.

    Raises:
        DataError: The file is not such an archive, or is cut short.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            return [archive[field] for field in IdxSet._fields]
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise damaged(path, f"cannot be read as a dataset ({error})") from error


def write_npz(path: Path, arrays: Sequence[Pixels], *, compress: bool = False) -> None:
    """Write the four arrays beside their final place, then move them there in one step.

    A process that dies on the way, or two that write at once, never leave half a file behind.
    """
    save = np.savez_compressed if compress else np.savez
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            save(file, **dict(zip(IdxSet._fields, arrays, strict=True)))  # type: ignore[arg-type]
        os.chmod(temporary, 0o644)  # mkstemp's own mode would hide it from everyone else
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
