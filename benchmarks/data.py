"""Data of the benchmarks."""

from __future__ import annotations

import numpy as np

from efhc_jax.data import Dataset, load_dataset
from efhc_jax.errors import DataError


def images_of_paper(test_images: int | None = None, full: bool = True) -> Dataset:
    """The full Fashion-MNIST if it is found, otherwise the subset in the package.

    Args:
        test_images: number of test images; they are repeated if there are fewer.
        full: False always takes the subset.
    """
    try:
        data = load_dataset("fashion_mnist" if full else "fashion_mnist_mini")
    except DataError:
        data = load_dataset("fashion_mnist_mini")
    if test_images is None:
        return data
    chosen = np.arange(test_images) % len(data.test_labels)
    return data._replace(test_images=data.test_images[chosen], test_labels=data.test_labels[chosen])


def random_images(side: int, samples: int, test_samples: int = 10, classes: int = 10) -> Dataset:
    """Random square images of any size, for measurements that do not depend on the data."""
    rng = np.random.default_rng(side)
    images = rng.integers(0, 256, (samples, side, side), dtype=np.uint8)
    labels = (np.arange(samples) % classes).astype(np.int32)
    return Dataset("random", images, labels, images[:test_samples], labels[:test_samples])
