"""IDX, the file format of MNIST and its relatives, and checksums over it.

An IDX file is a short header (type, dimensions) and then the bytes of one array. The checksum of
the *decompressed* file identifies the contents however they were compressed, and since the header
follows from the shape, the same checksum also verifies an array that came from elsewhere.
"""

import gzip
import hashlib
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from efhc_jax.data.dataset import Dataset
from efhc_jax.errors import DataError

Pixels = npt.NDArray[np.uint8]

_UNSIGNED_BYTE = 0x08
_GZIP_MAGIC = b"\x1f\x8b"


class IdxFile(NamedTuple):
    """The expected contents of an IDX file: its name without `.gz`, the array's shape, the checksum."""

    name: str
    shape: tuple[int, ...]
    sha256: str


class IdxSet(NamedTuple):
    """The four files of a dataset, in the order of `Dataset`'s arrays."""

    train_images: IdxFile
    train_labels: IdxFile
    test_images: IdxFile
    test_labels: IdxFile


def idx_bytes(array: Pixels) -> bytes:
    """The array as the contents of an IDX file."""
    header = struct.pack(f">HBB{array.ndim}I", 0, _UNSIGNED_BYTE, array.ndim, *array.shape)
    return header + array.tobytes()


def idx_digest(array: Pixels) -> str:
    """SHA-256, in hexadecimal, of the array's IDX form."""
    return hashlib.sha256(idx_bytes(array)).hexdigest()


def find_file(directory: Path, file: IdxFile) -> Path | None:
    """The path of the file in the directory, gzipped or plain, or None."""
    for candidate in (directory / f"{file.name}.gz", directory / file.name):
        if candidate.is_file():
            return candidate
    return None


def missing_files(directory: Path, files: IdxSet) -> list[str]:
    """Names of those of the four files that are missing from the directory."""
    return [file.name for file in files if find_file(directory, file) is None]


def read_idx_file(path: Path, file: IdxFile) -> Pixels:
    """Read one IDX file, gzipped or plain, and verify its contents.

    Raises:
        DataError: The file cannot be read, is truncated, or has other contents.
    """
    content = _decompressed(path)
    expected_bytes = 4 + 4 * len(file.shape) + int(np.prod(file.shape))
    if len(content) != expected_bytes:
        raise damaged(path, f"contains {len(content):,} bytes, not {expected_bytes:,}")
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise damaged(path, f"is not the original {file.name} (its SHA-256 differs)")
    pixels = np.frombuffer(content, np.uint8, offset=4 + 4 * len(file.shape))
    return pixels.reshape(file.shape).copy()  # frombuffer alone would be read-only


def read_idx_directory(directory: Path, files: IdxSet, setting: str) -> list[Pixels]:
    """Read the four files of a directory.

    Args:
        directory: The directory with the four files, each gzipped or plain.
        files: Their expected contents.
        setting: The setting that gave the directory, for the error message.

    Raises:
        DataError: A file is missing or damaged.
    """
    paths = [find_file(directory, file) for file in files]
    present = [path for path in paths if path is not None]
    if len(present) < len(files):
        missing = ", ".join(missing_files(directory, files))
        raise DataError(
            f"{setting}={str(directory)!r}: no {missing} (plain or .gz) there; "
            f"give the directory that contains all four IDX files"
        )
    return [read_idx_file(path, file) for path, file in zip(present, files, strict=True)]


def verified_dataset(name: str, arrays: Sequence[Pixels], files: IdxSet, where: Path) -> Dataset:
    """A `Dataset` of four arrays, after verification of their checksums.

    Raises:
        DataError: An array is not the original.
    """
    for field, array, file in zip(IdxSet._fields, arrays, files, strict=True):
        if array.dtype != np.uint8 or array.shape != file.shape:
            found = f"{array.dtype} {array.shape}"
            raise damaged(where, f"contains {field} as {found}, not uint8 {file.shape}")
        if idx_digest(array) != file.sha256:
            raise damaged(where, f"contains other {field} than the original (the SHA-256 differs)")
    train_images, train_labels, test_images, test_labels = arrays
    return Dataset(
        name,
        train_images,
        train_labels.astype(np.int32),
        test_images,
        test_labels.astype(np.int32),
    )


def damaged(where: Path, what: str) -> DataError:
    """The error for damaged data, which is never skipped in favour of another source."""
    return DataError(f"{where} {what}; delete it or replace it with the original, then try again")


def _decompressed(path: Path) -> bytes:
    """The file's contents. Compression is detected from the first bytes, not from the name."""
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if content.startswith(_GZIP_MAGIC) else content
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise damaged(path, f"is damaged or truncated ({error})") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
