"""The type of all datasets: four arrays and a name."""

import zlib
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from efhc_jax.errors import DataError


class Dataset(NamedTuple):
    """Labelled grayscale images as published, without scaling or shuffling.

    Sample indices anywhere in the package are rows of `train_images`, so the order is part of the
    dataset: the same name gives the same rows in the same order, whatever the source.

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
        """Checksum of all four arrays, which identifies the samples."""
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

    def _repr_html_(self) -> str:
        from efhc_jax.data.html import dataset_html

        return dataset_html(self)


def check_dataset(data: Dataset) -> Dataset:
    """The dataset, after validation of its arrays.

    Raises:
        DataError: An array has the wrong type, shape or values.
    """
    if not isinstance(data, Dataset):
        raise DataError(
            f"data: {_described(data)}; give efhc_jax.Dataset(name, train_images, train_labels, "
            "test_images, test_labels)"
        )
    if not isinstance(data.name, str) or not data.name.strip():
        raise DataError(f"name={data.name!r}: a dataset needs a name, under which results are stored")
    for part in ("train", "test"):
        images, labels = getattr(data, f"{part}_images"), getattr(data, f"{part}_labels")
        if not _is_array(images, np.uint8, 3) or not images.size:
            raise DataError(
                f"{part}_images of {data.name!r}: {_described(images)}; "
                "give grayscale images as uint8 (sample, height, width), 0 to 255"
            )
        if images.shape[1:] != data.train_images.shape[1:]:
            raise DataError(
                f"test_images of {data.name!r}: {_described(images)}, but training images are "
                f"{data.image_shape}; give images of one size"
            )
        whole = _is_array(labels, np.integer, 1)
        if not whole or len(labels) != len(images) or labels.min() < 0:
            raise DataError(
                f"{part}_labels of {data.name!r}: {_described(labels)} for {len(images):,} images; "
                "give one label per image as int32, from 0"
            )
    _check_every_class_is_there(data)
    return data


def _check_every_class_is_there(data: Dataset) -> None:
    """Raise if labels have gaps, each of which would be an additional class."""
    present = np.union1d(data.train_labels, data.test_labels)
    missing = np.setdiff1d(np.arange(present[-1]), present)
    if len(missing):
        shown = ", ".join(map(str, missing[:5])) + (", …" if len(missing) > 5 else "")
        raise DataError(
            f"labels of {data.name!r}: {len(present)} classes, numbered from {present[0]} to "
            f"{present[-1]} without {shown}; number them from 0 without gaps, for example with "
            "np.unique(labels, return_inverse=True)[1]"
        )


def _is_array(array: object, kind: npt.DTypeLike, dimensions: int) -> bool:
    if not isinstance(array, np.ndarray) or array.ndim != dimensions:
        return False
    return np.issubdtype(array.dtype, kind)


def _described(array: object) -> str:
    if not isinstance(array, np.ndarray):
        return f"a {type(array).__name__}"
    lowest = f" from {array.min()}" if array.size and array.ndim == 1 else ""
    return f"{array.dtype} {array.shape}{lowest}"
