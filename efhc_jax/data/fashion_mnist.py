"""Fashion-MNIST, all 60,000 training and 10,000 test images (Xiao et al., arXiv 1708.07747).

It is read from the first of these sources that has it:

1. `data_dir`, if given: a directory with the four IDX files, gzipped or plain;
2. the environment variable `EFHC_DATA_DIR`, the same;
3. the cache, `efhc_jax/` under `$XDG_CACHE_HOME` or `~/.cache`;
4. Debian's package `dataset-fashion-mnist`;
5. TensorFlow Datasets, as prepared by `fetch` or in TFDS's standard directory.

The contents are verified by SHA-256 each time, so every source gives the same bits in the same
order. Incomplete or damaged data is an error: the next source is tried only if there is nothing at
all. That applies to the cache as well, which only `fetch` rewrites.
"""

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from efhc_jax.data import tfds
from efhc_jax.data.dataset import Dataset
from efhc_jax.data.idx import (
    IdxFile,
    IdxSet,
    Pixels,
    missing_files,
    read_idx_directory,
    verified_dataset,
)
from efhc_jax.data.npz import read_npz, write_npz
from efhc_jax.disk.caches import cache_folder
from efhc_jax.disk.locks import held
from efhc_jax.errors import DataError

NAME = "fashion_mnist"
DEBIAN_DIRECTORY = Path("/usr/share/datasets/fashion-mnist")
FILES = IdxSet(
    IdxFile(
        "train-images-idx3-ubyte",
        (60_000, 28, 28),
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    ),
    IdxFile(
        "train-labels-idx1-ubyte",
        (60_000,),
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    ),
    IdxFile(
        "t10k-images-idx3-ubyte",
        (10_000, 28, 28),
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    ),
    IdxFile(
        "t10k-labels-idx1-ubyte",
        (10_000,),
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
)


class Place(NamedTuple):
    """A source of the dataset: its path and a function that reads it."""

    path: Path
    read: Callable[[], Sequence[Pixels]]
    worth_caching: bool = False


def load(data_dir: Path | None = None, files: IdxSet = FILES) -> Dataset:
    """Load the dataset from the first source that has it.

    Args:
        data_dir: A directory with the four IDX files, instead of the search.
        files: The expected contents of the files; by default the published originals.

    Raises:
        DataError: No source has it, or the first one that has is damaged.
    """
    place = locate(data_dir, files)
    if place is None:
        raise DataError(_how_to_get_it(files))
    arrays = place.read()
    dataset = verified_dataset(NAME, arrays, files, place.path)
    if place.worth_caching:
        _write_cache(arrays)
    return dataset


def locate(data_dir: Path | None = None, files: IdxSet = FILES) -> Place | None:
    """The first source that has the dataset or a part of it, or None."""
    from_environment = os.environ.get("EFHC_DATA_DIR")
    if data_dir is not None:
        return Place(data_dir, partial(read_idx_directory, data_dir, files, "data_dir"))
    if from_environment:
        given = Path(from_environment)
        return Place(given, partial(read_idx_directory, given, files, "EFHC_DATA_DIR"))
    has_cache = cache_folder() is not None
    if has_cache and cache_file().is_file():
        return Place(cache_file(), partial(read_npz, cache_file()))
    if len(missing_files(DEBIAN_DIRECTORY, files)) < len(files):
        debian = DEBIAN_DIRECTORY
        return Place(debian, partial(read_idx_directory, debian, files, "dataset-fashion-mnist"))
    for directory in (_fetch_directory() if has_cache else None, tfds.standard_directory()):
        if directory and (prepared := tfds.find_prepared(directory)):
            read = partial(tfds.read_prepared, prepared)
            return Place(prepared, read, worth_caching=has_cache)
    return None


def where() -> str:
    """The path that `load` would read, or an empty string."""
    place = locate()
    return "" if place is None else str(place.path)


def fetch(data_dir: Path | None = None, files: IdxSet = FILES) -> Path:
    """Prepare the dataset with TensorFlow Datasets and write it to the cache.

    Args:
        data_dir: A directory with the four IDX files; None downloads them (31 MB).
        files: The expected contents of the files.

    Returns:
        The cache file, which `load` then finds.

    Raises:
        DataError: The download failed or is not the original, or the cache cannot be written.
    """
    try:
        _fetch_directory().mkdir(parents=True, exist_ok=True)
        with _removed_if_empty(_fetch_directory()), held(_fetch_directory(), "cache"):
            tfds.remove_temporary(_fetch_directory())
            try:
                prepared = tfds.prepare(_fetch_directory(), files, data_dir)
            finally:
                tfds.remove_temporary(_fetch_directory())
            arrays = tfds.read_prepared(prepared)
            verified_dataset(NAME, arrays, files, prepared)
            write_npz(cache_file(), arrays)
    except OSError as error:
        raise DataError(
            f"{cache_directory()} cannot be written to ({error}); "
            f"set XDG_CACHE_HOME to another directory"
        ) from error
    return cache_file()


@contextlib.contextmanager
def _removed_if_empty(directory: Path) -> Iterator[None]:
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # it holds something
            directory.rmdir()
            directory.parent.rmdir()


def cache_directory() -> Path:
    """The folder of the cache: `efhc_jax` under `$XDG_CACHE_HOME` or `~/.cache`.

    Raises:
        DataError: There is neither.
    """
    folder = cache_folder()
    if folder is None:
        raise DataError("XDG_CACHE_HOME: not set, and there is no home directory; set it to a directory")
    return folder


def cache_file() -> Path:
    """The file with the cached arrays, which loads in a tenth of a second instead of several."""
    return cache_directory() / f"{NAME}.npz"


def _fetch_directory() -> Path:
    """The directory in which `fetch` prepares; not TFDS's standard one, which belongs to the user."""
    return cache_directory() / "tensorflow_datasets"


def _write_cache(arrays: Sequence[Pixels]) -> None:
    """Write the arrays to the cache; if that fails, only the next load is slower."""
    try:
        write_npz(cache_file(), arrays)
    except OSError as error:
        warnings.warn(f"{cache_file()} was not written: {error}", RuntimeWarning, stacklevel=4)


def _how_to_get_it(files: IdxSet) -> str:
    names = ", ".join(f"{file.name}.gz" for file in files)
    return (
        "dataset='fashion_mnist' was not found on this machine. To get it, do one of these:\n"
        "  - on Debian or Ubuntu: apt install dataset-fashion-mnist\n"
        "  - efhc data --fetch (downloads 31 MB through TensorFlow Datasets)\n"
        f"  - put {names} into a directory (the .gz may be unpacked) and give it as data_dir "
        "or in the environment variable EFHC_DATA_DIR\n"
        "  - use dataset='fashion_mnist_mini', a subset that is included in this package"
    )
