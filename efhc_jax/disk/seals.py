"""Checksum at the end of a result file, verified before the file is parsed.

The HDF5 library hangs on some damaged files. It ignores bytes after the end of its own data, so other
programs can read the file as plain netCDF.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from efhc_jax.errors import DataError

_MARK = b"\nefhc-jax crc32 "
_LENGTH = len(_MARK) + 9  # eight digits and a newline
_HDF5 = b"\x89HDF\r\n\x1a\n"
_PLACE_OF_END = {0: 40, 1: 44, 2: 28, 3: 28}  # offset of the length of the data, by superblock version


def sealed(content: bytes | memoryview) -> bytes:
    """The content followed by its checksum."""
    return b"".join([content, _MARK, b"%08x\n" % zlib.crc32(content)])


def read_sealed(path: Path) -> bytes:
    """The content without its checksum, or an HDF5 file of another program as it is.

    Raises:
        DataError: the checksum is wrong or missing, or the file is not HDF5.
    """
    whole = path.read_bytes()
    content, seal = whole[:-_LENGTH], whole[-_LENGTH:]
    if seal.startswith(_MARK):
        if seal != sealed(content)[-_LENGTH:]:
            raise DataError(f"{path}: is damaged (its checksum is wrong)")
        return content
    if not whole.startswith(_HDF5):
        raise DataError(f"{path}: cannot be read as netCDF (it is not an HDF5 file)")
    if len(whole) != _length_of_hdf5(whole):
        raise DataError(f"{path}: is damaged (it is truncated, or its checksum is missing)")
    return whole


def _length_of_hdf5(whole: bytes) -> int | None:
    try:
        (length,) = struct.unpack_from("<Q", whole, _PLACE_OF_END[whole[len(_HDF5)]])
    except (KeyError, IndexError, struct.error):
        return None
    return int(length)
