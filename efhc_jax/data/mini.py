"""A balanced subset of Fashion-MNIST that is included in the package: 5,000 and 1,000 images.

Five hundred training and a hundred test images of each class, chosen by
`scripts/make_mini_dataset.py`, in the order of the full set. It is meant for tutorials, tests and
machines without a network; for publications use the full set.
"""

from pathlib import Path

from efhc_jax.data.dataset import Dataset
from efhc_jax.data.idx import IdxFile, IdxSet, verified_dataset
from efhc_jax.data.npz import read_npz
from efhc_jax.errors import DataError

NAME = "fashion_mnist_mini"
PATH = Path(__file__).with_name("fashion_mnist_mini.npz")
FILES = IdxSet(
    IdxFile(
        "train-images",
        (5_000, 28, 28),
        "10de783701ec60d4d74cb9a8d16eced71008d2cc9a5fc7190e15692edc48c230",
    ),
    IdxFile(
        "train-labels",
        (5_000,),
        "027a1d5a9479b2bb3f8b2c41cfe1d8e6376b77604967a8260e716195da260dab",
    ),
    IdxFile(
        "test-images",
        (1_000, 28, 28),
        "86006d0354cd80805a11a8667198746a16b4b8bd8c811309954b9ddd7ecc0316",
    ),
    IdxFile(
        "test-labels",
        (1_000,),
        "c6d07cd9045adb01a0276c6602e1b620a35fb9e7044923a9cfb1ed724176e7e7",
    ),
)


def load() -> Dataset:
    """Load the subset.

    Raises:
        DataError: The package's file is missing or damaged.
    """
    if not PATH.is_file():
        raise DataError(f"{PATH} is missing from the package; install efhc_jax again")
    return verified_dataset(NAME, read_npz(PATH), FILES, PATH)


def where() -> str:
    """The path of the package's file."""
    return str(PATH)
