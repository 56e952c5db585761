"""One process at a time in a folder, and a clear word to the others."""

import errno
import fcntl
import os
import subprocess
import sys

import pytest

import efhc_jax as efhc
from efhc_jax.locks import NAME, held


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
        "from efhc_jax.locks import held\n"
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
        assert (tmp_path / NAME).read_text().startswith(f"{os.getpid()} on ")


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
        assert (tmp_path / NAME).read_text().startswith(f"{os.getpid()} on ")


def test_a_file_system_without_locks_is_worked_on_with_a_warning(tmp_path, monkeypatch):
    def flock(file, operation):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.warns(RuntimeWarning, match="cannot be locked"), held(tmp_path):
        pass
