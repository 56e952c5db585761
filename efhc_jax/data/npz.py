"""The four arrays of a dataset in one NumPy archive, without pickle."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from efhc_jax.data.idx import IdxSet, Pixels, damaged
from efhc_jax.disk.files import written_whole


def read_npz(path: Path) -> list[Pixels]:
    """Read the four arrays; the caller verifies their contents.

    Raises:
        DataError: The file is not such an archive, or is truncated.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            return [archive[field] for field in IdxSet._fields]
    except Exception as error:  # what NumPy raises on a damaged file is not documented
        raise damaged(path, f"cannot be read as a dataset ({error})") from error


def write_npz(path: Path, arrays: Sequence[Pixels], *, compress: bool = False) -> None:
    """Write the four arrays to a temporary file and move it atomically.

    A process that is killed, or two that write at once, never leave a partial file.
    """
    save = np.savez_compressed if compress else np.savez
    with written_whole(path) as part, part.open("wb") as file:
        save(file, **dict(zip(IdxSet._fields, arrays, strict=True)))  # type: ignore[arg-type]
