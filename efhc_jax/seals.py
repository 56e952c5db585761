"""A checksum at the end of a result file, checked before anything tries to make sense of the file.

The HDF5 library does not survive every damaged file: on some it never returns. It ignores what follows
the end of its own data, so the file stays netCDF for everybody else.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from efhc_jax.errors import DataError

_MARK = b"\nefhc-jax crc32 "
_LENGTH = len(_MARK) + 9  # eight digits and a line's end
_HDF5 = b"\x89HDF\r\n\x1a\n"
_PLACE_OF_END = {0: 40, 1: 44, 2: 28, 3: 28}  # where HDF5 keeps the length of its data, by version


def sealed(content: bytes | memoryview) -> bytes:
    """The content with its checksum."""
    return b"".join([content, _MARK, b"%08x\n" % zlib.crc32(content)])


def read_sealed(path: Path) -> bytes:
    """What was sealed, or an HDF5 file of somebody else's as it is.

    Raises:
        DataError: the content is not what was sealed, or the file is something else.
    """
    whole = path.read_bytes()
    content, seal = whole[:-_LENGTH], whole[-_LENGTH:]
    if seal.startswith(_MARK):
        if seal != sealed(content)[-_LENGTH:]:
            raise DataError(f"{path}: is damaged (its checksum is wrong)")
        return content
    if not whole.startswith(_HDF5):
        raise DataError(f"{path}: cannot be read as netCDF (it is something else)")
    if len(whole) != _length_of_hdf5(whole):
        raise DataError(f"{path}: is damaged (it is cut short, or has lost its checksum)")
    return whole


def _length_of_hdf5(whole: bytes) -> int | None:
    try:
        (length,) = struct.unpack_from("<Q", whole, _PLACE_OF_END[whole[len(_HDF5)]])
    except (KeyError, IndexError, struct.error):
        return None
    return int(length)
