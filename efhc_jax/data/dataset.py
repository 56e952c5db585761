"""What every data source returns: four arrays and a name."""

import zlib
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Dataset(NamedTuple):
    """Labelled grey images, as they were published: no scaling, no shuffling.

    Sample indices anywhere in the package are rows of `train_images`, so the order is part of the
    dataset: the same name gives the same rows in the same order, wherever it was read from.

    Attributes:
        name: The name it was loaded by.
        train_images: uint8 (N, height, width), 0 to 255.
        train_labels: int32 (N,), from 0.
        test_images: uint8 (M, height, width).
        test_labels: int32 (M,).

    Example:
        >>> from efhc_jax.data import load_dataset
        >>> data = load_dataset("synthetic")
        >>> data.train_images.shape, data.image_shape, data.classes
        ((2000, 28, 28), (28, 28), 10)
    """

    name: str
    train_images: npt.NDArray[np.uint8]
    train_labels: npt.NDArray[np.int32]
    test_images: npt.NDArray[np.uint8]
    test_labels: npt.NDArray[np.int32]

    @property
    def classes(self) -> int:
        """Number of classes: the largest label of both parts, plus one."""
        return int(max(self.train_labels.max(), self.test_labels.max())) + 1

    @property
    def digest(self) -> str:
        """What tells these samples from others: a checksum of all four arrays."""
        checksum = 0
        for array in self[1:]:
            checksum = zlib.crc32(f"{array.dtype} {array.shape}".encode(), checksum)
            checksum = zlib.crc32(np.ascontiguousarray(array), checksum)
        return f"{checksum:08x}"

    @property
    def image_shape(self) -> tuple[int, int]:
        """Height and width of one image."""
        height, width = self.train_images.shape[1:]
        return height, width
