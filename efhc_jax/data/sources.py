"""The datasets by name. A new dataset is a module with `load` and `where`, and an entry here."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from efhc_jax.data import fashion_mnist, mini, synthetic
from efhc_jax.data.dataset import Dataset, check_dataset
from efhc_jax.errors import DataError, ExperimentError
from efhc_jax.text.names import known_name

ADD_YOUR_OWN = (
    "for data of your own give a Dataset as `data=` in Python, or add it to efhc_jax.data.DATASETS "
    "(docs/extending.md)"
)


class Source(NamedTuple):
    """A source of a dataset.

    Attributes:
        load: Returns the dataset, or raises `DataError`.
        where: Returns the path that it is read from.
        samples: Number of training and of test samples.
        note: A description in one line.
        load_from: Returns the dataset from a directory given by the user; None if it has no files.
        fetch: Gets it from a directory or the network and returns its path; None if not needed.
        digest: The expected `Dataset.digest`; empty if not known.
    """

    load: Callable[[], Dataset]
    where: Callable[[], str]
    samples: tuple[int, int]
    note: str
    load_from: Callable[[Path], Dataset] | None = None
    fetch: Callable[[Path | None], Path] | None = None
    digest: str = ""


class Availability(NamedTuple):
    """Whether a dataset can be used on this machine.

    Attributes:
        name: The value of `dataset`.
        found: Whether it loads and its checksums are correct.
        where: The path that it is read from; empty if there is none.
        samples: Number of training and of test samples.
        note: A description or, if it was not found, the reason and what to do.
    """

    name: str
    found: bool
    where: str
    samples: tuple[int, int]
    note: str


DATASETS: dict[str, Source] = {
    fashion_mnist.NAME: Source(
        load=fashion_mnist.load,
        where=fashion_mnist.where,
        samples=(60_000, 10_000),
        note="the full set of the paper's experiments",
        load_from=fashion_mnist.load,
        fetch=fashion_mnist.fetch,
        digest="ee8624d8",
    ),
    mini.NAME: Source(
        load=mini.load,
        where=mini.where,
        samples=(5_000, 1_000),
        note="a balanced subset of Fashion-MNIST that is included in the package",
        digest="32d2dddf",
    ),
    synthetic.NAME: Source(
        load=synthetic.load,
        where=synthetic.where,
        samples=(synthetic.TRAIN_SAMPLES, synthetic.TEST_SAMPLES),
        note="ten smooth patterns with noise, for tests and first steps",
        digest="c5b2915f",
    ),
}


def load_dataset(name: str, data_dir: str | PathLike[str] | None = None) -> Dataset:
    """Load a dataset by name. One dataset is never substituted for another.

    Args:
        name: One of `DATASETS`.
        data_dir: A directory with the files of the dataset, if it has files; by default it is
            searched for as its module describes.

    Raises:
        ExperimentError: There is no such dataset, or it has no files.
        DataError: It is not on this machine, or is damaged or invalid.

    Example:
        >>> load_dataset("fashion_mnist_mini").train_images.shape
        (5000, 28, 28)
    """
    name = known_name(name, DATASETS)
    source = _source(name)
    if data_dir is None:
        return check_dataset(source.load())._replace(name=name)
    if source.load_from is None:
        raise ExperimentError(
            f"data_dir={str(data_dir)!r}: dataset={name!r} has no files; leave data_dir out"
        )
    return check_dataset(source.load_from(Path(data_dir)))._replace(name=name)


def check_own(data: Dataset) -> Dataset:
    """A custom dataset, after validation of its arrays and its name.

    Raises:
        DataError: It is invalid, or has the name of another dataset.
    """
    check_dataset(data)
    name = known_name(data.name, DATASETS)
    known = DATASETS[name].digest if name in DATASETS else ""
    if known and data.digest != known:
        raise DataError(
            f"name={data.name!r}: these are not the samples of {name}; "
            "give them another name, data._replace(name=…), under which results are stored"
        )
    return data


def fetch(name: str = fashion_mnist.NAME, data_dir: str | PathLike[str] | None = None) -> Path:
    """Get a dataset that is not included in the package, and keep it in the cache.

    Args:
        name: One of `DATASETS` that can be fetched.
        data_dir: A directory with the files of the dataset; None downloads them.

    Returns:
        The path of the cached file.

    Raises:
        ExperimentError: There is no such dataset, or it need not be fetched.
        DataError: The download failed, or is not the original.
    """
    source = _source(name)
    if source.fetch is None:
        fetched = ", ".join(key for key, other in DATASETS.items() if other.fetch)
        raise ExperimentError(
            f"dataset={name!r}: need not be fetched; datasets that can be fetched are: {fetched}"
        )
    return source.fetch(None if data_dir is None else Path(data_dir))


def available_datasets() -> list[Availability]:
    """The datasets and their availability. Each is loaded, so that `found` means that it works."""
    return [_availability(name, source) for name, source in DATASETS.items()]


def _availability(name: str, source: Source) -> Availability:
    where = ""
    try:
        where = source.where()
        check_dataset(source.load())
    except DataError as error:
        return Availability(name, False, where, source.samples, str(error))
    return Availability(name, True, source.where(), source.samples, source.note)


def _source(name: str) -> Source:
    name = known_name(name, DATASETS)
    if name not in DATASETS:
        allowed = ", ".join(DATASETS)
        raise ExperimentError(
            f"dataset={name!r}: no such dataset; choose one of: {allowed}; {ADD_YOUR_OWN}"
        )
    return DATASETS[name]
