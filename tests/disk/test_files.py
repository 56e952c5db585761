"""Files are there in full or not at all, and folders do not outlive a failed start."""

import fcntl
import os
import stat
import subprocess
import sys

import pytest

from efhc_jax.disk.files import output_folder, written_whole
from efhc_jax.disk.locks import held
from efhc_jax.errors import ExperimentError
from efhc_jax.storage.netcdf import result_files


class Failure(Exception):
    pass


def test_contents_arrive_when_the_block_ends(tmp_path):
    path = tmp_path / "new" / "folder" / "result.txt"
    with written_whole(path) as part:
        part.write_text("all of it")
        assert not path.exists()
        assert part.parent == path.parent
        assert part.name.startswith(".result.txt.")
        assert part.suffix != path.suffix, "nothing takes it for a result"
    assert path.read_text() == "all of it"
    assert [entry.name for entry in path.parent.iterdir()] == ["result.txt"]


@pytest.fixture
def umask():
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(("mask", "expected"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_permissions_that_the_umask_leaves(tmp_path, umask, mask, expected):
    umask(mask)
    with written_whole(tmp_path / "result.txt") as part:
        part.write_text("new")
        assert mode(part) == expected
    assert mode(tmp_path / "result.txt") == expected


@pytest.mark.parametrize("kept", [0o600, 0o640, 0o664, 0o444])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path, umask, kept):
    path = tmp_path / "result.txt"
    path.touch()
    path.chmod(kept)
    with written_whole(path) as part:
        part.write_text("new")
    assert (path.read_text(), mode(path)) == ("new", kept)


WRITER = """
import pathlib, sys, time
from efhc_jax.disk.files import written_whole
with written_whole(pathlib.Path(sys.argv[1])) as part:
    part.write_text("half of i")
    print(part.name, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def writer(tmp_path):
    """A process in the middle of writing a result, and the name of its temporary file."""
    command = [sys.executable, "-c", WRITER, str(tmp_path / "one.nc")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    yield process, process.stdout.readline().strip()
    process.kill()
    process.communicate()


def test_what_a_killed_process_left_is_no_result_and_goes_at_the_next_start(tmp_path, writer):
    process, part = writer
    process.kill()
    process.wait()
    assert (tmp_path / part).exists()
    assert not list(tmp_path.glob("*.nc"))
    (tmp_path / "one.nc").touch()
    (tmp_path / ".hidden.nc").touch()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "two.nc").touch()
    assert result_files([tmp_path]) == [tmp_path / "one.nc"]
    with output_folder(tmp_path), held(tmp_path):
        assert not (tmp_path / part).exists()


def test_leftovers_stay_while_another_process_holds_the_folder(tmp_path):
    part = tmp_path / ".one.nc.efhc-part-0123456789abcdef"
    with held(tmp_path):
        part.touch()
        with pytest.raises(ExperimentError), output_folder(tmp_path), held(tmp_path):
            pytest.fail("the folder was locked twice")
        assert part.exists()


def test_what_a_killed_process_left_goes_when_the_file_is_written_again(tmp_path, writer):
    process, part = writer
    process.kill()
    process.wait()
    with written_whole(tmp_path / "another.nc"):
        assert (tmp_path / part).exists()
    with written_whole(tmp_path / "one.nc"):
        assert not (tmp_path / part).exists()


def test_what_a_living_process_writes_stays(tmp_path, writer):
    _, part = writer
    with output_folder(tmp_path), held(tmp_path), written_whole(tmp_path / "one.nc"):
        assert (tmp_path / part).read_text() == "half of i"


@pytest.mark.parametrize("unlinked", [False, True])
def test_a_file_that_is_taken_for_a_leftover_gets_another_name(tmp_path, monkeypatch, unlinked):
    """A process that cleans up may find a temporary file between its creation and its lock."""
    create, cleaners = os.open, []

    def create_and_be_found(path, flags, *mode):
        handle = create(path, flags, *mode)
        if flags & os.O_EXCL and not cleaners:
            cleaners.append((path, create(path, os.O_RDWR)))
            fcntl.flock(cleaners[0][1], fcntl.LOCK_EX | fcntl.LOCK_NB)
            if unlinked:
                os.unlink(path)
                os.close(cleaners[0][1])
        return handle

    monkeypatch.setattr(os, "open", create_and_be_found)
    with written_whole(tmp_path / "one.nc") as part:
        found, handle = cleaners[0]
        assert part != found
        if not unlinked:
            os.unlink(found)
            os.close(handle)
        part.write_text("all of it")
    assert (tmp_path / "one.nc").read_text() == "all of it"
    assert [entry.name for entry in tmp_path.iterdir()] == ["one.nc"]


def test_only_leftovers_of_our_own_are_removed(tmp_path):
    ours = ".one.nc.efhc-part-0123456789abcdef"
    others = [".one.part", ".efhc-part-notes", "one.nc.efhc-part-0123456789abcdef", f"{ours}.txt"]
    for name in [ours, *others]:
        (tmp_path / name).touch()
    (tmp_path / "precious").touch()
    (tmp_path / ".link.efhc-part-0123456789abcdef").symlink_to("precious")
    with output_folder(tmp_path), held(tmp_path):
        pass
    expected = {*others, "precious", ".link.efhc-part-0123456789abcdef"}
    assert {entry.name for entry in tmp_path.iterdir()} == expected


def test_a_name_as_long_as_names_can_be(tmp_path):
    for name in ("x" * 251 + ".txt", "模" * 83 + ".txt"):
        with written_whole(tmp_path / name) as part:
            part.write_text("all of it")
        assert (tmp_path / name).read_text() == "all of it"


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
