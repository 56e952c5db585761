"""A small dataset in IDX files."""

import gzip
from pathlib import Path
from typing import NamedTuple

import numpy as np

from efhc_jax.data import fashion_mnist
from efhc_jax.data.idx import IdxFile, IdxSet, Pixels, idx_bytes, idx_digest


class SmallSet(NamedTuple):
    """Some real images, in a directory of IDX files."""

    directory: Path
    files: IdxSet
    arrays: list[Pixels]


def write_small(directory: Path, real: list[Pixels], skip: int) -> SmallSet:
    """Write a part of real images, with checksums of its own."""
    directory.mkdir()
    arrays = [
        np.ascontiguousarray(array[skip : skip + count])
        for array, count in zip(real, (300, 300, 60, 60), strict=True)
    ]
    files = IdxSet(
        *(
            IdxFile(file.name, array.shape, idx_digest(array))
            for file, array in zip(fashion_mnist.FILES, arrays, strict=True)
        )
    )
    for file, array in zip(files, arrays, strict=True):
        (directory / f"{file.name}.gz").write_bytes(gzip.compress(idx_bytes(array)))
    return SmallSet(directory, files, arrays)
