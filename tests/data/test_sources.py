"""Where datasets come from: contents, order of the search, damage, and what the errors say."""

import gzip
import importlib.util
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from efhc_jax.data import (
    DATASETS,
    Dataset,
    available_datasets,
    check_own,
    fashion_mnist,
    fetch,
    load_dataset,
    mini,
)
from efhc_jax.data.idx import Pixels, idx_digest
from efhc_jax.data.npz import read_npz, write_npz
from efhc_jax.errors import DataError, ExperimentError
from small_set import SmallSet

SCRIPT = Path(__file__).parents[2] / "scripts" / "make_mini_dataset.py"


def assert_holds(dataset: Dataset, arrays: list[Pixels]) -> None:
    """The dataset is made of these arrays, row for row."""
    for found, expected in zip(dataset[1:], arrays, strict=True):
        np.testing.assert_array_equal(found, expected)


# Every dataset


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.full_data] if name == "fashion_mnist" else [])
        for name in DATASETS
    ],
)
def test_every_dataset_has_the_promised_form(name: str) -> None:
    data = load_dataset(name)
    train, test = DATASETS[name].samples
    assert data.name == name
    assert data.train_images.shape == (train, 28, 28)
    assert data.test_images.shape == (test, 28, 28)
    assert data.train_images.dtype == data.test_images.dtype == np.uint8
    assert data.train_labels.dtype == data.test_labels.dtype == np.int32
    assert data.classes == 10
    assert data.image_shape == (28, 28)
    np.testing.assert_array_equal(np.bincount(data.train_labels), np.full(10, train // 10))
    np.testing.assert_array_equal(np.bincount(data.test_labels), np.full(10, test // 10))


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ExperimentError, match=r"dataset='mnist'.*fashion_mnist_mini, synthetic"):
        load_dataset("mnist")


@pytest.mark.parametrize("name", ["fashion_mnist_mini", "synthetic"])
def test_a_directory_is_refused_where_none_is_read(name: str, tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=r"data_dir=.*leave data_dir out"):
        load_dataset(name, data_dir=tmp_path)


@pytest.mark.parametrize("name", ["fashion_mnist_mini", "synthetic"])
def test_there_is_nothing_to_fetch_for_what_is_at_hand(name: str) -> None:
    with pytest.raises(ExperimentError, match=f"dataset='{name}'.*can be fetched are: fashion_mnist$"):
        fetch(name)


def test_importing_the_package_leaves_the_heavy_parts_alone() -> None:
    code = (
        "import sys, types;"
        "package = types.ModuleType('efhc_jax'); package.__path__ = ['efhc_jax'];"
        "sys.modules['efhc_jax'] = package;"  # the data package alone, without its parent's imports
        "import efhc_jax.data;"
        "print([name for name in ('jax', 'tensorflow_datasets', 'PIL') if name in sys.modules])"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


# What is on the machine


def test_describe_finds_everything_where_the_debian_package_is(
    small: SmallSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fashion_mnist, "DEBIAN_DIRECTORY", small.directory)
    stand_in = DATASETS["fashion_mnist"]._replace(load=lambda: fashion_mnist.load(None, small.files))
    monkeypatch.setitem(DATASETS, "fashion_mnist", stand_in)
    assert [(row.name, row.found, row.samples) for row in available_datasets()] == [
        ("fashion_mnist", True, (60_000, 10_000)),
        ("fashion_mnist_mini", True, (5_000, 1_000)),
        ("synthetic", True, (2_000, 500)),
    ]
    assert available_datasets()[0].where == str(small.directory)


@pytest.mark.usefixtures("no_debian")
def test_describe_says_what_to_do_about_a_missing_set() -> None:
    full, *others = available_datasets()
    assert not full.found
    assert full.where == ""
    assert "apt install" in full.note
    assert all(row.found for row in others)


def test_describe_does_not_call_a_damaged_set_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EFHC_DATA_DIR", str(tmp_path))
    full = available_datasets()[0]
    assert not full.found
    assert full.where == str(tmp_path)
    assert "EFHC_DATA_DIR" in full.note


# Fashion-MNIST: contents


@pytest.mark.full_data
def test_the_full_set_is_the_published_one() -> None:
    data = load_dataset("fashion_mnist")
    assert data.train_labels[:10].tolist() == [9, 0, 0, 3, 0, 2, 7, 2, 5, 5]
    assert data.test_labels[:10].tolist() == [9, 2, 1, 1, 6, 1, 4, 6, 5, 7]
    # The mean and deviation that are quoted everywhere for scaling Fashion-MNIST.
    scaled = data.train_images / 255
    assert scaled.mean() == pytest.approx(0.2860, abs=5e-5)
    assert scaled.std() == pytest.approx(0.3530, abs=5e-5)


@pytest.mark.parametrize("unpack", ["none", "all", "some"])
def test_files_may_be_gzipped_or_plain(small: SmallSet, unpack: str) -> None:
    for place, file in enumerate(small.files):
        if unpack == "all" or (unpack == "some" and place % 2):
            packed = small.directory / f"{file.name}.gz"
            (small.directory / file.name).write_bytes(gzip.decompress(packed.read_bytes()))
            packed.unlink()
    assert_holds(fashion_mnist.load(small.directory, small.files), small.arrays)


def test_a_file_is_known_by_its_contents_not_by_how_it_was_compressed(small: SmallSet) -> None:
    for file in small.files:
        path = small.directory / f"{file.name}.gz"
        plain = gzip.decompress(path.read_bytes())
        path.write_bytes(gzip.compress(plain, compresslevel=1, mtime=12345))
    assert_holds(fashion_mnist.load(small.directory, small.files), small.arrays)


# Fashion-MNIST: the order of the search


def test_the_search_goes_from_the_explicit_to_the_general(
    small: SmallSet, other: SmallSet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def place() -> str:
        return fashion_mnist.where()

    monkeypatch.setattr(fashion_mnist, "DEBIAN_DIRECTORY", tmp_path / "none")
    assert place() == ""
    prepared = tmp_path / "home" / "tensorflow_datasets" / "fashion_mnist" / "3.0.1"
    prepared.mkdir(parents=True)
    (prepared / "dataset_info.json").write_text('{"fileFormat": "array_record"}')
    assert place() == str(prepared)
    monkeypatch.setattr(fashion_mnist, "DEBIAN_DIRECTORY", small.directory)
    assert place() == str(small.directory)
    write_npz(fashion_mnist.cache_file(), small.arrays)
    assert place() == str(tmp_path / "cache" / "efhc_jax" / "fashion_mnist.npz")
    monkeypatch.setenv("EFHC_DATA_DIR", str(other.directory))
    assert place() == str(other.directory)
    assert_holds(fashion_mnist.load(None, other.files), other.arrays)
    assert_holds(fashion_mnist.load(small.directory, small.files), small.arrays)


def test_an_empty_environment_variable_counts_as_unset(
    small: SmallSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EFHC_DATA_DIR", "")
    monkeypatch.setattr(fashion_mnist, "DEBIAN_DIRECTORY", small.directory)
    assert_holds(fashion_mnist.load(None, small.files), small.arrays)


def test_the_debian_files_are_not_cached(small: SmallSet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fashion_mnist, "DEBIAN_DIRECTORY", small.directory)
    fashion_mnist.load(None, small.files)
    assert not fashion_mnist.cache_directory().exists()


@pytest.mark.usefixtures("no_debian")
def test_a_missing_set_names_every_way_to_get_it() -> None:
    with pytest.raises(DataError) as caught:
        load_dataset("fashion_mnist")
    message = str(caught.value)
    for way in (
        "dataset='fashion_mnist'",
        "apt install dataset-fashion-mnist",
        "efhc data --fetch",
        "data_dir",
        "EFHC_DATA_DIR",
        "t10k-labels-idx1-ubyte",
        "fashion_mnist_mini",
    ):
        assert way in message


def test_tfds_records_of_another_format_count_as_absent(
    no_debian: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    prepared = tmp_path / "fashion_mnist" / "3.0.1"
    prepared.mkdir(parents=True)
    (prepared / "dataset_info.json").write_text('{"fileFormat": "tfrecord"}')
    assert fashion_mnist.locate() is None


# Fashion-MNIST: damage is an error, although a good copy stands next in line


def test_a_given_directory_without_the_files_is_an_error(small: SmallSet, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data_dir='.*no train-images-idx3-ubyte, train-labels"):
        load_dataset("fashion_mnist", data_dir=tmp_path / "nowhere")
    (small.directory / "t10k-images-idx3-ubyte.gz").unlink()
    with pytest.raises(DataError, match=r"data_dir='.*small': no t10k-images-idx3-ubyte \(plain"):
        fashion_mnist.load(small.directory, small.files)


def test_a_given_environment_variable_without_the_files_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EFHC_DATA_DIR", str(tmp_path))
    with pytest.raises(DataError, match=r"EFHC_DATA_DIR='.*all four IDX files"):
        load_dataset("fashion_mnist")


def test_a_package_with_a_file_gone_is_an_error(
    small: SmallSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fashion_mnist, "DEBIAN_DIRECTORY", small.directory)
    (small.directory / "train-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(DataError, match=r"dataset-fashion-mnist=.*no train-labels-idx1-ubyte"):
        fashion_mnist.load(None, small.files)


def test_a_truncated_gzip_file_is_an_error_that_names_it(small: SmallSet) -> None:
    path = small.directory / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(DataError, match=f"{path} is damaged or truncated.*delete it or replace"):
        fashion_mnist.load(small.directory, small.files)


def test_a_truncated_plain_file_is_an_error_that_names_it(small: SmallSet) -> None:
    path = small.directory / "t10k-labels-idx1-ubyte"
    packed = path.with_suffix(".gz")
    path.write_bytes(gzip.decompress(packed.read_bytes())[:-1])
    packed.unlink()
    with pytest.raises(DataError, match=f"{path} contains 67 bytes, not 68"):
        fashion_mnist.load(small.directory, small.files)


@pytest.mark.parametrize("place", [0, 5, -1])
def test_one_changed_byte_is_an_error(small: SmallSet, place: int) -> None:
    path = small.directory / "train-labels-idx1-ubyte.gz"
    content = bytearray(gzip.decompress(path.read_bytes()))
    content[place] ^= 1
    path.write_bytes(gzip.compress(bytes(content)))
    with pytest.raises(DataError, match=f"{path} is not the original train-labels-idx1-ubyte"):
        fashion_mnist.load(small.directory, small.files)


def test_damaged_compression_is_an_error(small: SmallSet) -> None:
    path = small.directory / "train-images-idx3-ubyte.gz"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match=str(path)):
        fashion_mnist.load(small.directory, small.files)


def test_a_damaged_package_is_not_passed_over(small: SmallSet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fashion_mnist, "DEBIAN_DIRECTORY", small.directory)
    with pytest.raises(DataError, match="train-images-idx3-ubyte"):
        load_dataset("fashion_mnist")  # small images are not the originals


# The cache


def test_the_cache_is_read_and_verified(small: SmallSet, other: SmallSet) -> None:
    write_npz(fashion_mnist.cache_file(), small.arrays)
    assert_holds(fashion_mnist.load(None, small.files), small.arrays)
    with pytest.raises(DataError, match=r"fashion_mnist\.npz contains other train_images"):
        fashion_mnist.load(None, other.files)


def test_a_truncated_cache_is_an_error(small: SmallSet) -> None:
    path = fashion_mnist.cache_file()
    write_npz(path, small.arrays)
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(DataError, match=r"fashion_mnist\.npz cannot be read.*delete it"):
        fashion_mnist.load(None, small.files)


def test_a_cache_of_other_shapes_is_an_error(small: SmallSet) -> None:
    write_npz(fashion_mnist.cache_file(), [array[:5] for array in small.arrays])
    with pytest.raises(DataError, match=r"train_images as uint8 \(5, 28, 28\), not uint8 \(300"):
        fashion_mnist.load(None, small.files)


def test_a_pickle_in_the_cache_is_not_opened(small: SmallSet) -> None:
    path = fashion_mnist.cache_file()
    path.parent.mkdir(parents=True)
    objects = [np.array([{"any": "object"}]) for _ in small.arrays]
    np.savez(path, **dict(zip(small.files._fields, objects, strict=True)))
    with pytest.raises(DataError, match="allow_pickle"):
        fashion_mnist.load(None, small.files)


def test_a_write_that_fails_leaves_the_old_file(small: SmallSet, tmp_path: Path) -> None:
    path = tmp_path / "kept" / "arrays.npz"
    write_npz(path, small.arrays)

    class Unwritable:
        def __array__(self, *_: object, **__: object) -> np.ndarray:
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_npz(path, [*small.arrays[:3], Unwritable()])  # type: ignore[list-item]
    assert [file.name for file in path.parent.iterdir()] == ["arrays.npz"]
    np.testing.assert_array_equal(read_npz(path)[0], small.arrays[0])


# The part that comes with the package


@pytest.mark.full_data
def test_the_mini_set_is_what_its_script_chooses_from_the_full_one() -> None:
    spec = importlib.util.spec_from_file_location("make_mini_dataset", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    chosen = script.mini_arrays(load_dataset("fashion_mnist"))
    assert_holds(load_dataset("fashion_mnist_mini"), chosen)


def test_the_mini_set_is_small_and_comes_with_its_licence() -> None:
    assert mini.PATH.stat().st_size < 3_000_000
    licence = mini.PATH.with_name("FASHION_MNIST_LICENSE.txt").read_text()
    assert "Copyright (c) 2017 Zalando SE" in licence


def test_a_damaged_or_missing_mini_set_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    arrays = read_npz(mini.PATH)
    monkeypatch.setattr(mini, "PATH", tmp_path / "mini.npz")
    with pytest.raises(DataError, match="missing from the package"):
        load_dataset("fashion_mnist_mini")
    arrays[2][7, 7, 7] ^= 1
    write_npz(mini.PATH, arrays)
    with pytest.raises(DataError, match="contains other test_images"):
        load_dataset("fashion_mnist_mini")


# The synthetic set


def test_the_synthetic_set_is_the_same_at_every_call_and_on_every_machine() -> None:
    first, second = load_dataset("synthetic"), load_dataset("synthetic")
    for one, two in zip(first[1:], second[1:], strict=True):
        np.testing.assert_array_equal(one, two)
    assert idx_digest(first.train_images).startswith("d53c15de3735d859")


def test_a_linear_model_does_well_on_the_synthetic_set_but_not_perfectly() -> None:
    data = load_dataset("synthetic")

    def inputs(images: Pixels) -> np.ndarray:
        return np.column_stack([images.reshape(len(images), -1) / 255, np.ones(len(images))])

    train, targets = inputs(data.train_images), np.eye(10)[data.train_labels]
    weights = np.linalg.solve(train.T @ train + 10 * np.eye(785), train.T @ targets)
    guesses = np.argmax(inputs(data.test_images) @ weights, axis=1)
    assert 0.85 < np.mean(guesses == data.test_labels) < 0.98


def test_the_synthetic_set_is_quick() -> None:
    load_dataset("synthetic")
    begin = time.process_time()
    load_dataset("synthetic")
    assert time.process_time() - begin < 0.5  # about 0.05 s; the slack is for busy machines


def test_a_dataset_has_its_own_name_whatever_the_spelling():
    assert load_dataset("Synthetic").name == "synthetic"
    other = load_dataset("synthetic")
    other = other._replace(name="Synthetic", train_images=255 - other.train_images)
    with pytest.raises(DataError, match="these are not the samples of synthetic"):
        check_own(other)
