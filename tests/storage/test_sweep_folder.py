"""A sweep's folder: finished batches come back as they were, and nobody else's are touched."""

import json
import multiprocessing
import re

import numpy as np
import pytest

import efhc_jax as efhc
from efhc_jax.results.history import Record
from efhc_jax.storage.sweep_folder import FORMAT, Store

MANIFEST = {
    "experiment": {"model": "svm", "r": 50.0, "devices": 5},
    "axes": {"seed": [0, 1], "policy": ["efhc", "zt"]},
    "data": {"tiny": "1234"},
    "files": {"links.csv": "12"},
    "versions": {"jax": "0.10"},
    "batch": 4,
}


def make_record(rng, steps=6, evaluations=3, **more):
    return Record(
        bandwidth=rng.random(5).astype(np.float32),
        degree=rng.integers(5, size=5).astype(np.int32),
        iterations=np.arange(evaluations) * 3,
        evaluations={
            "accuracy": rng.random((evaluations, 5)),
            "consensus_error": rng.random(evaluations).astype(np.float32),
        },
        steps={"links_used": rng.integers(9, size=steps), "train_loss": rng.random(steps)},
        **more,
    )


@pytest.fixture
def records():
    rng = np.random.default_rng(0)
    budgets = {
        "accuracy_at_budget": np.array([[0.5, np.nan]]),
        "iteration_at_budget": np.array([-1]),
    }
    return [
        make_record(rng, budgets={}),
        make_record(rng, 2, 1, budgets={}, diverged_at=3, diverged=(0, 4)),
        make_record(rng, 0, 1, budgets={}, diverged_at=1, diverged=(2,)),
        make_record(rng, budgets=budgets),
        make_record(rng, budgets={}, initial_weights=rng.random((5, 7))),
    ]


def assert_same_record(ours, theirs):
    for field, value in theirs._asdict().items():
        found = getattr(ours, field)
        if isinstance(value, dict):
            assert list(found) == list(value)
            pairs = [(found[name], array) for name, array in value.items()]
        elif isinstance(value, np.ndarray):
            pairs = [(found, value)]
        else:
            assert found == value
            assert type(found) is type(value)
            continue
        for array, expected in pairs:
            assert array.dtype == expected.dtype
            np.testing.assert_array_equal(array, expected)


def test_records_come_back_as_they_were(tmp_path, records):
    Store(tmp_path).save(3, records)
    found = Store(tmp_path).load(3)
    assert len(found) == len(records)
    for ours, theirs in zip(found, records, strict=True):
        assert_same_record(ours, theirs)


def test_more_than_ten_runs_keep_their_places(tmp_path):
    rng = np.random.default_rng(1)
    records = [make_record(rng, budgets={}) for _ in range(12)]
    Store(tmp_path).save(0, records)
    for ours, theirs in zip(Store(tmp_path).load(0), records, strict=True):
        assert_same_record(ours, theirs)


def test_only_saved_batches_are_finished(tmp_path, records):
    store = Store(tmp_path)
    assert not store.finished(7)
    store.save(7, records)
    assert store.finished(7)
    assert not store.finished(0)
    assert [path.name for path in (tmp_path / "batches").iterdir()] == ["00007.npz"]


def test_a_failed_save_is_not_a_finished_batch(tmp_path, records, monkeypatch):
    def half(file, **arrays):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", half)
    with pytest.raises(OSError, match="No space left"):
        Store(tmp_path).save(0, records)
    assert not Store(tmp_path).finished(0)
    assert list((tmp_path / "batches").iterdir()) == []


def cut(content):
    return content[: len(content) // 2]


def emptied(content):
    return b""


def overwritten(content):
    return b"something else entirely"


def bits_flipped(content):
    middle = len(content) // 3
    return (
        content[:middle]
        + bytes(byte ^ 0xFF for byte in content[middle : middle + 64])
        + content[middle + 64 :]
    )


@pytest.mark.parametrize("damage", [cut, emptied, overwritten, bits_flipped])
def test_a_damaged_batch_is_named(tmp_path, records, damage):
    store = Store(tmp_path)
    store.save(2, records)
    path = tmp_path / "batches" / "00002.npz"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(efhc.DataError, match=re.escape(str(path))) as caught:
        store.load(2)
    assert "remove this file" in str(caught.value)


def test_an_archive_of_something_else_is_named(tmp_path):
    path = tmp_path / "batches" / "00000.npz"
    path.parent.mkdir()
    np.savez(path, numbers=np.arange(3))
    with pytest.raises(efhc.DataError, match=re.escape(str(path))):
        Store(tmp_path).load(0)


def test_a_claim_is_written_down_and_the_same_one_goes_on(tmp_path):
    folder = tmp_path / "sweep"
    assert Store(folder).claim(MANIFEST) == {"format": FORMAT} | MANIFEST
    assert json.loads((folder / "sweep.json").read_text()) == {"format": FORMAT} | MANIFEST
    assert Store(folder).claim(MANIFEST) == {"format": FORMAT} | MANIFEST


def test_the_batch_size_of_the_beginning_stands(tmp_path):
    Store(tmp_path).claim(MANIFEST)
    assert Store(tmp_path).claim(MANIFEST | {"batch": 64})["batch"] == 4


def test_a_setting_that_did_not_exist_yet_had_its_default(tmp_path):
    Store(tmp_path).claim(MANIFEST)
    settings = MANIFEST["experiment"]
    Store(tmp_path).claim(MANIFEST | {"experiment": settings | {"early_evaluations": 0}})
    with pytest.raises(efhc.ExperimentError, match="early_evaluations is 0 there and 2 here"):
        Store(tmp_path).claim(MANIFEST | {"experiment": settings | {"early_evaluations": 2}})
    assert json.loads((tmp_path / "sweep.json").read_text())["batch"] == 4


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"experiment": MANIFEST["experiment"] | {"r": 5.0}}, "r is 50.0 there and 5.0 here"),
        (
            {"axes": MANIFEST["axes"] | {"seed": [0, 1, 2]}},
            "seed is [0, 1] there and [0, 1, 2] here",
        ),
        ({"axes": {"seed": [0, 1]}}, 'policy is ["efhc", "zt"] there and not swept here'),
        (
            {"axes": MANIFEST["axes"] | {"graph": ["ring"]}},
            'graph is not swept there and ["ring"] here',
        ),
        ({"data": {"tiny": "99"}}, "the data are different"),
        ({"files": {"links.csv": "99"}}, "the contents of links.csv are different"),
        ({"versions": {"jax": "0.99"}}, "jax is 0.10 there and 0.99 here"),
    ],
)
def test_another_sweep_is_refused_with_the_difference(tmp_path, change, difference):
    Store(tmp_path).claim(MANIFEST)
    before = (tmp_path / "sweep.json").read_bytes()
    with pytest.raises(efhc.ExperimentError, match=re.escape(difference)) as caught:
        Store(tmp_path).claim(MANIFEST | change)
    assert str(caught.value).startswith(f"out={tmp_path}: contains another sweep")
    assert "another folder" in str(caught.value)
    assert (tmp_path / "sweep.json").read_bytes() == before


def test_every_difference_is_named(tmp_path):
    Store(tmp_path).claim(MANIFEST)
    other = {"model": "lenet5", "r": 5.0, "devices": 5}
    with pytest.raises(efhc.ExperimentError) as caught:
        Store(tmp_path).claim(MANIFEST | {"experiment": other, "data": {"tiny": "3"}})
    assert 'model is "svm" there and "lenet5" here' in str(caught.value)
    assert "r is 50.0 there and 5.0 here" in str(caught.value)
    assert "the data are different" in str(caught.value)
    assert "devices" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (json.dumps(MANIFEST | {"format": FORMAT + 1}), "newer version .*upgrade"),
        ("{ not json", "cannot be read"),
        ("", "cannot be read"),
    ],
)
def test_a_manifest_that_is_newer_or_damaged_is_named(tmp_path, content, message):
    (tmp_path / "sweep.json").write_text(content)
    with pytest.raises(efhc.DataError, match=f"sweep.json: .*{message}"):
        Store(tmp_path).claim(MANIFEST)
    assert (tmp_path / "sweep.json").read_text() == content


def test_a_result_of_unknown_origin_is_not_overwritten(tmp_path):
    (tmp_path / "sweep.nc").touch()
    with pytest.raises(efhc.ExperimentError, match=r"contains a result without its sweep\.json"):
        Store(tmp_path).claim(MANIFEST)


def test_one_process_at_a_time(tmp_path):
    with (
        Store(tmp_path).locked(),
        pytest.raises(efhc.ExperimentError, match=r"another process \(\d+ on .*\) is using it"),
        Store(tmp_path).locked(),
    ):
        pytest.fail("two hold the folder")
    with Store(tmp_path).locked():
        pass


def hold(folder, held, release):
    with Store(folder).locked():
        held.set()
        release.wait()


def test_the_lock_of_a_killed_process_is_free_again(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    held, release = spawn.Event(), spawn.Event()
    process = spawn.Process(target=hold, args=(tmp_path, held, release))
    process.start()
    try:
        assert held.wait(60)
        with pytest.raises(efhc.ExperimentError, match=re.escape(str(tmp_path))):
            Store(tmp_path).locked().__enter__()
    finally:
        process.kill()
        process.join()
    with Store(tmp_path).locked():
        pass


def test_tidy_leaves_the_whole_and_its_manifest(tmp_path, records):
    store = Store(tmp_path)
    store.claim(MANIFEST)
    store.save(0, records)
    (store.checkpoint / "0").mkdir(parents=True)
    store.result.touch()
    store.tidy()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sweep.json", "sweep.nc"]
