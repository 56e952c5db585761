"""Fashion-MNIST through TensorFlow Datasets: prepared, downloaded and read without a network."""

import functools
import gzip
import http.server
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from efhc_jax.data import fashion_mnist, load_dataset, tfds
from efhc_jax.disk.locks import held
from efhc_jax.errors import DataError, ExperimentError
from small_set import SmallSet

pytestmark = pytest.mark.usefixtures("no_debian")


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves a directory and keeps no log."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def served(small: SmallSet, monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallSet]:
    """The small set behind the address that TFDS downloads from."""
    from tensorflow_datasets.image_classification.mnist import FashionMNIST

    handler = functools.partial(QuietHandler, directory=str(small.directory))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(FashionMNIST, "URL", f"http://127.0.0.1:{server.server_port}/")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield small
        server.shutdown()


def assert_loads(small: SmallSet) -> None:
    """`load` gives the small set, row for row, from wherever it finds it."""
    dataset = fashion_mnist.load(None, small.files)
    for found, expected in zip(dataset[1:], small.arrays, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_fetch_from_local_files_gives_the_same_rows_as_the_idx_files(small: SmallSet) -> None:
    cached = fashion_mnist.fetch(small.directory, small.files)
    assert cached == fashion_mnist.cache_file()
    assert fashion_mnist.where() == str(cached)
    assert_loads(small)
    assert "tensorflow" not in sys.modules


def test_fetch_downloads_through_tfds(served: SmallSet) -> None:
    fashion_mnist.fetch(None, served.files)
    assert_loads(served)


def test_fetch_mends_a_broken_cache(small: SmallSet) -> None:
    path = fashion_mnist.cache_file()
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not an archive")
    with pytest.raises(DataError, match="cannot be read as a dataset"):
        fashion_mnist.load(None, small.files)
    fashion_mnist.fetch(small.directory, small.files)
    assert_loads(small)


def test_a_wrong_download_is_an_error_and_is_not_kept(served: SmallSet) -> None:
    path = served.directory / "t10k-labels-idx1-ubyte.gz"
    right = path.read_bytes()
    path.write_bytes(gzip.compress(b"a page that says try again later"))
    with pytest.raises(DataError, match="contains 32 bytes, not 68"):
        fashion_mnist.fetch(None, served.files)
    assert not fashion_mnist.cache_file().exists()
    path.write_bytes(right)
    fashion_mnist.fetch(None, served.files)
    assert_loads(served)


def test_a_download_that_fails_is_an_error_that_says_what_to_try(served: SmallSet) -> None:
    (served.directory / "train-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(DataError, match=r"could not be prepared.*404.*check the network"):
        fashion_mnist.fetch(None, served.files)


def test_fetch_refuses_local_files_that_are_not_the_originals(small: SmallSet, other: SmallSet) -> None:
    with pytest.raises(DataError, match=r"other/train-images-idx3-ubyte\.gz is not the original"):
        fashion_mnist.fetch(other.directory, small.files)
    with pytest.raises(DataError, match=r"data_dir=.*no train-images"):
        fashion_mnist.fetch(other.directory / "nowhere", small.files)


def test_a_cache_that_cannot_be_written_is_an_error(
    small: SmallSet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(DataError, match=r"file/efhc_jax cannot be written.*set XDG_CACHE_HOME"):
        fashion_mnist.fetch(small.directory, small.files)


def test_a_copy_in_the_standard_directory_is_read_then_cached(
    small: SmallSet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    standard = tmp_path / "home" / "tensorflow_datasets"
    prepared = tfds.prepare(standard, small.files, small.directory)
    assert prepared.parent == standard / "fashion_mnist"
    assert fashion_mnist.where() == str(prepared)
    assert_loads(small)
    assert fashion_mnist.where() == str(fashion_mnist.cache_file())
    monkeypatch.setattr(tfds, "read_prepared", lambda _: pytest.fail("the cache was not used"))
    assert_loads(small)


def test_a_load_goes_on_where_the_cache_cannot_be_written(
    small: SmallSet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tfds.prepare(tmp_path / "home" / "tensorflow_datasets", small.files, small.directory)
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.warns(RuntimeWarning, match=r"fashion_mnist\.npz was not written"):
        assert_loads(small)


def test_tfds_itself_reads_what_was_prepared(small: SmallSet, tmp_path: Path) -> None:
    import tensorflow_datasets

    tfds.prepare(tmp_path / "tfds", small.files, small.directory)
    source = tensorflow_datasets.data_source(
        "fashion_mnist",
        split="test",
        data_dir=tmp_path / "tfds",
        builder_kwargs={"file_format": "array_record"},
    )
    labels = [int(record["label"]) for record in source]
    assert sorted(labels) == sorted(small.arrays[3].tolist())
    assert labels != small.arrays[3].tolist()  # why the original order has to be restored


def test_another_dataset_in_tfds_form_is_an_error(
    small: SmallSet, other: SmallSet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "mine"))
    tfds.prepare(tmp_path / "mine", other.files, other.directory)
    with pytest.raises(DataError, match=r"fashion_mnist/3.0.1 contains other train_images"):
        fashion_mnist.load(None, small.files)
    with pytest.raises(DataError, match=r"\(300, 28, 28\), not uint8 \(60000, 28, 28\)"):
        load_dataset("fashion_mnist")
    assert not fashion_mnist.cache_file().exists()


@pytest.mark.parametrize("damage", ["truncate", "remove"])
def test_damaged_records_are_an_error(
    small: SmallSet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, damage: str
) -> None:
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "mine"))
    prepared = tfds.prepare(tmp_path / "mine", small.files, small.directory)
    (records,) = prepared.glob("*test.array_record*")
    if damage == "truncate":
        records.write_bytes(records.read_bytes()[: records.stat().st_size // 2])
    else:
        records.unlink()
    with pytest.raises(DataError, match=r"cannot be read by TensorFlow Datasets.*delete it"):
        fashion_mnist.load(None, small.files)


def test_a_damaged_description_is_an_error(
    small: SmallSet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    description = tmp_path / "fashion_mnist" / "3.0.1" / "dataset_info.json"
    description.parent.mkdir(parents=True)
    description.write_text('{"fileForm')
    with pytest.raises(DataError, match=r"dataset_info\.json cannot be read"):
        fashion_mnist.load(None, small.files)


def left_behind(tmp_path: Path) -> list[str]:
    """What is under the cache and is not meant to stay there, and temporary folders of TFDS."""
    found = [
        path
        for path in (tmp_path / "cache").rglob("*")
        if "incomplete" in path.name
        or ".tmp." in path.name
        or (path.is_dir() and not any(path.iterdir()))
    ]
    return [str(path) for path in [*found, *(tmp_path / "temporary").iterdir()]]


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A place of its own for temporary files."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))


@pytest.mark.usefixtures("temporary")
def test_fetch_leaves_no_temporary_folders(served: SmallSet, tmp_path: Path) -> None:
    path = served.directory / "train-labels-idx1-ubyte.gz"
    right = path.read_bytes()
    path.unlink()
    with pytest.raises(DataError, match="404"):
        fashion_mnist.fetch(None, served.files)
    assert left_behind(tmp_path) == []
    path.write_bytes(right)
    fashion_mnist.fetch(None, served.files)
    assert left_behind(tmp_path) == []
    assert_loads(served)


@pytest.mark.usefixtures("temporary")
def test_fetch_that_is_stopped_leaves_nothing(
    small: SmallSet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tfds, "_download", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fashion_mnist.fetch(None, small.files)
    assert left_behind(tmp_path) == []
    assert not fashion_mnist.cache_directory().exists()


@pytest.mark.usefixtures("temporary")
def test_fetch_removes_what_a_killed_one_left(small: SmallSet, tmp_path: Path) -> None:
    directory = fashion_mnist.cache_directory() / "tensorflow_datasets"
    for name in (
        "fashion_mnist/incomplete.ABC123_3.0.1",
        f"downloads/fashion_mnist/train.gz.tmp.{'0a' * 16}",
    ):
        (directory / name).mkdir(parents=True)
        (directory / name / "half").touch()
    kept = directory / "downloads" / "fashion_mnist" / "train.gz"
    kept.touch()
    fashion_mnist.fetch(small.directory, small.files)
    assert left_behind(tmp_path) == []
    assert kept.exists()


@pytest.mark.usefixtures("temporary")
@pytest.mark.parametrize(
    ("port", "reason"), [("closed", "no connection"), ("silent", "no answer in time")]
)
def test_fetch_without_a_network_says_so_soon(
    small: SmallSet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, port: str, reason: str
) -> None:
    from tensorflow_datasets.image_classification.mnist import FashionMNIST

    monkeypatch.setattr(tfds, "_LONGEST_WAIT", 0.5)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if port == "silent":
            server.listen()
        monkeypatch.setattr(FashionMNIST, "URL", f"http://127.0.0.1:{server.getsockname()[1]}/")
        began = time.monotonic()
        with pytest.raises(
            DataError, match=rf"could not be downloaded .* \({reason}\); check the network"
        ):
            fashion_mnist.fetch(None, small.files)
        assert time.monotonic() - began < 15
    assert left_behind(tmp_path) == []


def test_two_do_not_fetch_at_once(small: SmallSet) -> None:
    directory = fashion_mnist.cache_directory() / "tensorflow_datasets"
    directory.mkdir(parents=True)
    with (
        held(directory),
        pytest.raises(ExperimentError, match=r"cache=.*another process .* wait for it"),
    ):
        fashion_mnist.fetch(small.directory, small.files)
