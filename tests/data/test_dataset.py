"""What a dataset is made of, and what is said where it is made of something else."""

import numpy as np
import pytest

import efhc_jax as efhc
from efhc_jax.data import DATASETS, Dataset, Source, available_datasets, check_dataset, load_dataset
from efhc_jax.errors import DataError

IMAGES = np.zeros((8, 3, 3), np.uint8)
LABELS = np.tile(np.arange(4), 2).astype(np.int32)
GOOD = Dataset("mine", IMAGES, LABELS, IMAGES, LABELS)


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint8])
def test_a_good_one_is_returned_as_it_is(kind: type) -> None:
    good = GOOD._replace(train_labels=LABELS.astype(kind), test_labels=LABELS.astype(kind))
    assert check_dataset(good) is good


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"train_images": IMAGES / 255},
            r"train_images of 'mine': float64 \(8, 3, 3\); give grayscale images",
        ),
        ({"test_images": IMAGES.astype(int)}, "test_images of 'mine': int64"),
        ({"train_images": IMAGES[..., None]}, r"uint8 \(8, 3, 3, 1\); give grayscale images"),
        ({"train_images": IMAGES.tolist()}, "train_images of 'mine': a list; give grayscale images"),
        (
            {"test_images": IMAGES[:0], "test_labels": LABELS[:0]},
            r"uint8 \(0, 3, 3\); give grayscale images",
        ),
        (
            {"test_images": np.zeros((8, 4, 4), np.uint8)},
            r"training images are \(3, 3\); give images of one size",
        ),
        ({"train_labels": LABELS[:7]}, r"int32 \(7,\) from 0 for 8 images; give one label per image"),
        ({"test_labels": LABELS - 1}, r"test_labels of 'mine': int32 \(8,\) from -1 for 8 images"),
        ({"test_labels": LABELS.astype(float)}, r"test_labels of 'mine': float64 \(8,\)"),
        (
            {"train_labels": np.eye(8, 4, dtype=int)},
            r"train_labels of 'mine': int64 \(8, 4\) for 8 images",
        ),
    ],
)
def test_a_bad_one_is_refused_with_what_to_give(wrong: dict[str, object], message: str) -> None:
    bad = GOOD._replace(**wrong)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=message):
        check_dataset(bad)


def test_runs_and_sweeps_look_at_a_dataset_of_the_users_own() -> None:
    bad = GOOD._replace(train_images=IMAGES / 255)
    experiment = efhc.Experiment(dataset="synthetic", devices=4, iterations=2)
    with pytest.raises(DataError, match="float64"):
        efhc.simulate(experiment, bad)
    with pytest.raises(DataError, match="float64"):
        efhc.sweep(experiment, bad, seed=range(2))


def test_a_source_with_bad_arrays_is_not_said_to_work(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = Source(lambda: GOOD._replace(test_labels=LABELS - 1), lambda: "here", (8, 8), "mine")
    monkeypatch.setitem(DATASETS, "mine", bad)
    (found,) = (entry for entry in available_datasets() if entry.name == "mine")
    assert not found.found
    assert "from -1" in found.note
    with pytest.raises(DataError, match="from -1"):
        load_dataset("mine")
