"""Choose the subset of Fashion-MNIST that is included in the package, and write it there.

Run it as `python scripts/make_mini_dataset.py`; it needs the full set. It prints the checksums to
put into `efhc_jax/data/mini.py`. The choice is deterministic, so a second run changes nothing.
"""

import numpy as np
import numpy.typing as npt

from efhc_jax.data import Dataset, load_dataset, mini
from efhc_jax.data.idx import IdxSet, Pixels, idx_digest
from efhc_jax.data.npz import write_npz

TRAIN_PER_CLASS = 500
TEST_PER_CLASS = 100
SEED = 0


def choose(
    labels: npt.NDArray[np.int32], per_class: int, rng: np.random.Generator
) -> npt.NDArray[np.intp]:
    """Indices of `per_class` samples of each class, drawn at random, in increasing order."""
    chosen = [
        rng.choice(np.flatnonzero(labels == label), per_class, replace=False)
        for label in np.unique(labels)
    ]
    return np.sort(np.concatenate(chosen))


def mini_arrays(full: Dataset) -> list[Pixels]:
    """The four arrays of the subset, in the order of the full set."""
    rng = np.random.default_rng(SEED)
    train = choose(full.train_labels, TRAIN_PER_CLASS, rng)
    test = choose(full.test_labels, TEST_PER_CLASS, rng)
    return [
        full.train_images[train],
        full.train_labels[train].astype(np.uint8),
        full.test_images[test],
        full.test_labels[test].astype(np.uint8),
    ]


def main() -> None:
    """Write the subset and print its checksums."""
    arrays = mini_arrays(load_dataset("fashion_mnist"))
    write_npz(mini.PATH, arrays, compress=True)
    print(f"{mini.PATH}: {mini.PATH.stat().st_size:,} bytes")
    for field, array in zip(IdxSet._fields, arrays, strict=True):
        print(f"{field} {array.shape} {idx_digest(array)}")


if __name__ == "__main__":
    main()
