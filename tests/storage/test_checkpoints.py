"""Checkpoints: everything comes back as it was, the newest first, and damage is named."""

import re

import jax
import numpy as np
import pytest

import efhc_jax as efhc
from efhc_jax.storage.checkpoints import Checkpoints

# What reads a damaged checkpoint may still be at work when its event loop is closed.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

TREE = {
    "history": {
        "position": np.int64(2**40),
        "spent": np.array([1 / 3, 2e300]),
        "steps": {"loss": np.linspace(0, 1, 7, dtype=np.float32).reshape(1, 7)},
    },
    "states": {
        "adjacency": np.array([[True, False], [False, True]]),
        "broadcasts": np.array([[3, -4]], np.int32),
        "weights": np.array([np.nan, np.inf, -0.0], np.float32),
    },
}


def with_position(position):
    return {"history": {"position": np.int64(position)}}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "below" / "checkpoint"


def test_nothing_saved_is_none(folder):
    assert Checkpoints(folder).newest() is None
    assert not folder.exists()
    folder.mkdir(parents=True)
    assert Checkpoints(folder).newest() is None


def test_a_tree_comes_back_with_its_types_and_bits(folder):
    Checkpoints(folder).save(3, TREE)
    found = Checkpoints(folder).newest()
    assert jax.tree.structure(found) == jax.tree.structure(TREE)
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(TREE), strict=True):
        assert isinstance(ours, np.ndarray)
        assert ours.dtype == theirs.dtype
        assert ours.tobytes() == theirs.tobytes()


def test_the_newest_of_several_and_no_more_than_two(folder):
    checkpoints = Checkpoints(folder)
    for position in (8, 9, 10, 11):
        checkpoints.save(position, with_position(position))
        assert int(checkpoints.newest()["history"]["position"]) == position
    assert int(Checkpoints(folder).newest()["history"]["position"]) == 11
    assert sorted(entry.name for entry in folder.iterdir() if entry.name.isdigit()) == ["10", "11"]


@pytest.mark.parametrize("damage", [b"", b"no longer what it was"])
@pytest.mark.parametrize("victims", ["default/**/d/*", "default/_METADATA", "default/manifest.ocdbt"])
def test_damage_is_named_with_the_folder(folder, damage, victims):
    Checkpoints(folder).save(1, TREE)
    paths = [path for path in (folder / "1").glob(victims) if path.is_file()]
    assert paths
    for path in paths:
        path.write_bytes(damage)
    with pytest.raises(efhc.DataError, match=re.escape(str(folder))) as caught:
        Checkpoints(folder).newest()
    assert "damaged" in str(caught.value)
    assert "remove this folder" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_was_not_finished_does_not_count(folder):
    Checkpoints(folder).save(1, with_position(1))
    (folder / "2.orbax-checkpoint-tmp-0").mkdir()
    assert int(Checkpoints(folder).newest()["history"]["position"]) == 1


def test_clear_removes_everything_and_work_can_go_on(folder):
    checkpoints = Checkpoints(folder)
    checkpoints.save(1, with_position(1))
    checkpoints.clear()
    assert not folder.exists()
    assert checkpoints.newest() is None
    checkpoints.save(2, with_position(2))
    assert int(checkpoints.newest()["history"]["position"]) == 2


def test_clear_of_nothing_is_no_error(folder):
    Checkpoints(folder).clear()
    assert not folder.exists()


def test_due_after_the_seconds_and_not_before(folder, monkeypatch):
    now = 100.0
    monkeypatch.setattr("efhc_jax.storage.checkpoints.time.monotonic", lambda: now)
    checkpoints = Checkpoints(folder, seconds=60)
    assert not checkpoints.due()
    now = 159.0
    assert not checkpoints.due()
    now = 160.0
    assert checkpoints.due()
    monkeypatch.setattr(checkpoints, "_open", FakeManager)
    checkpoints._manager = FakeManager()
    checkpoints.save(1, {})
    assert not checkpoints.due()


class FakeManager:
    def save(self, position, args):
        pass

    def wait_until_finished(self):
        pass
