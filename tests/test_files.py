"""Files are there in full or not at all, and folders do not outlive a failed start."""

import stat

import pytest

from efhc_jax.files import output_folder, written_whole


class Failure(Exception):
    pass


def test_contents_arrive_when_the_block_ends(tmp_path):
    path = tmp_path / "new" / "folder" / "result.txt"
    with written_whole(path) as part:
        part.write_text("all of it")
        assert not path.exists()
        assert part.parent == path.parent
        assert part.suffix == path.suffix
    assert path.read_text() == "all of it"
    assert [entry.name for entry in path.parent.iterdir()] == ["result.txt"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


@pytest.mark.parametrize("error", [Failure, KeyboardInterrupt])
def test_a_failure_keeps_what_was_there(tmp_path, error):
    path = tmp_path / "result.txt"
    path.write_text("old")
    with pytest.raises(error), written_whole(path) as part:
        part.write_text("half of the n")
        raise error
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["result.txt"]


def test_two_writers_do_not_meet(tmp_path):
    path = tmp_path / "result.txt"
    with written_whole(path) as first, written_whole(path) as second:
        assert first != second
        first.write_text("first")
        second.write_text("second")
    assert path.read_text() == "first"
    assert [entry.name for entry in tmp_path.iterdir()] == ["result.txt"]


@pytest.mark.parametrize("names", [("out",), ("out", "deep", "er")])
def test_a_folder_made_for_work_that_failed_goes_again(tmp_path, names):
    folder = tmp_path.joinpath(*names)
    with pytest.raises(Failure), output_folder(folder):
        assert folder.is_dir()
        raise Failure
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_something_in_it_stays(tmp_path):
    folder = tmp_path / "out"
    with pytest.raises(Failure), output_folder(folder):
        (folder / "kept").touch()
        raise Failure
    assert [entry.name for entry in folder.iterdir()] == ["kept"]


def test_a_folder_that_was_there_stays(tmp_path):
    with pytest.raises(Failure), output_folder(tmp_path):
        raise Failure
    assert tmp_path.is_dir()


def test_a_folder_stays_after_work_that_succeeded(tmp_path):
    with output_folder(tmp_path / "out"):
        pass
    assert (tmp_path / "out").is_dir()


def test_a_place_that_cannot_be_a_folder_is_known_before_the_work(tmp_path):
    (tmp_path / "file").touch()
    for bad in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(Exception, match="file"), output_folder(bad):
            pytest.fail("the work began")
