"""One process at a time in a folder, and a clear word to the others."""

import contextlib
import errno
import fcntl
import os
import socket
import subprocess
import sys

import pytest

import efhc_jax as efhc
from efhc_jax.disk.locks import NAME, held


def test_a_second_one_is_told_who_is_there(tmp_path):
    with held(tmp_path):
        with pytest.raises(efhc.ExperimentError) as caught, held(tmp_path):
            pytest.fail("two hold the folder")
        assert f"out={tmp_path}: another process ({os.getpid()} on " in str(caught.value)
        assert "give another folder" in str(caught.value)
    with held(tmp_path):
        pass


def test_nothing_is_left_behind(tmp_path):
    with held(tmp_path):
        assert (tmp_path / NAME).exists()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="inside"), held(tmp_path):
        raise ValueError("inside")
    assert list(tmp_path.iterdir()) == []


def test_the_file_of_a_killed_process_is_in_nobodys_way(tmp_path):
    program = (
        "import sys, time, pathlib\n"
        "from efhc_jax.disk.locks import held\n"
        "with held(pathlib.Path(sys.argv[1])):\n"
        "    print('held', flush=True)\n"
        "    time.sleep(600)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(efhc.ExperimentError, match=rf"another process \({process.pid} on"):
            held(tmp_path).__enter__()
    finally:
        process.kill()
        process.communicate()
    assert (tmp_path / NAME).exists()
    with held(tmp_path):
        assert f"process {os.getpid()} on " in (tmp_path / NAME).read_text()


def test_a_lock_that_was_removed_meanwhile_is_taken_anew(tmp_path, monkeypatch):
    """The other one goes between our opening its file and our locking it."""
    (tmp_path / NAME).write_text("somebody")
    calls = []

    def flock(file, operation):
        calls.append(operation)
        if len(calls) == 1:
            (tmp_path / NAME).unlink()

    monkeypatch.setattr(fcntl, "flock", flock)
    with held(tmp_path):
        assert len(calls) == 2
        assert f"process {os.getpid()} on " in (tmp_path / NAME).read_text()


def test_a_file_system_without_locks_is_worked_on_with_a_warning(tmp_path, monkeypatch):
    def flock(file, operation):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.warns(RuntimeWarning, match="cannot be locked"), held(tmp_path):
        pass


@pytest.mark.parametrize("name", [NAME, ".lock"])
def test_a_foreign_file_is_neither_emptied_nor_removed(tmp_path, name):
    (tmp_path / name).write_text("12 monkeys")
    refused = contextlib.nullcontext()
    if name == NAME:
        message = rf"out={tmp_path}: {NAME} in it is not a lock file of efhc; move it away"
        refused = pytest.raises(efhc.ExperimentError, match=message)
    with refused, held(tmp_path):
        assert name != NAME
    assert (tmp_path / name).read_text() == "12 monkeys"


@pytest.mark.parametrize("make", [os.symlink, os.link])
@pytest.mark.parametrize("content", ["precious", ""])
@pytest.mark.parametrize("name", [NAME, ".lock"])
def test_a_link_is_not_followed(tmp_path, make, content, name):
    precious = tmp_path / "precious"
    precious.write_text(content)
    folder = tmp_path / "out"
    folder.mkdir()
    make(precious, folder / name)
    refused = contextlib.nullcontext()
    if name == NAME:
        refused = pytest.raises(efhc.ExperimentError, match="not a lock file of efhc; move it away")
    with refused, held(folder):
        assert name != NAME
    assert precious.read_text() == content
    assert os.path.lexists(folder / name)


def test_a_link_to_nowhere_makes_no_file(tmp_path):
    (tmp_path / NAME).symlink_to(tmp_path / "nowhere")
    with pytest.raises(efhc.ExperimentError, match="not a lock file"), held(tmp_path):
        pytest.fail("the work began")
    assert not (tmp_path / "nowhere").exists()


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, make_socket])
def test_what_is_no_file_is_refused(tmp_path, monkeypatch, make):
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    make(NAME)
    before = os.lstat(NAME)
    with pytest.raises(efhc.ExperimentError, match="not a lock file"), held(tmp_path):
        pytest.fail("the work began")
    assert os.path.samestat(os.lstat(NAME), before)


def test_what_took_the_place_of_the_lock_stays(tmp_path):
    with held(tmp_path):
        (tmp_path / NAME).unlink()
        (tmp_path / NAME).write_text("somebody else's")
    assert (tmp_path / NAME).read_text() == "somebody else's"
