"""The cache may be missing, closed, damaged or mixed up: that costs time, and changes nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import efhc_jax as efhc
from efhc_jax.data import fashion_mnist
from efhc_jax.disk import caches
from efhc_jax.runs import diagnosis

RUN = ["run", "--dataset", "synthetic", "--devices", "4", "--iterations", "6", "--eval-every", "3"]


@pytest.fixture
def homeless(monkeypatch):
    """Neither a home directory nor a place for caches."""

    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    for name in ("XDG_CACHE_HOME", "TFDS_DATA_DIR", "EFHC_DATA_DIR", "JAX_COMPILATION_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def efhc_command(tmp_path):
    """`efhc` in a process of its own, with its own cache."""

    def run(*words, **variables):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
        environment |= {"XDG_CACHE_HOME": str(tmp_path / "cache"), "MPLBACKEND": "agg"} | variables
        command = [sys.executable, "-m", "efhc_jax", *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    return run


def test_a_cache_is_where_the_user_says(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert caches.cache_folder() == tmp_path / "efhc_jax"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert caches.cache_folder() == Path.home() / ".cache" / "efhc_jax"


def test_no_home(homeless, monkeypatch, tmp_path):
    assert caches.cache_folder() is None
    caches.keep_programs()
    monkeypatch.setattr(fashion_mnist, "DEBIAN_DIRECTORY", tmp_path)
    assert fashion_mnist.locate() is None
    assert diagnosis._cache().state == "note"
    with pytest.raises(efhc.DataError, match="XDG_CACHE_HOME: not set, and there is no home directory"):
        fashion_mnist.fetch()


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_cache_that_cannot_be_written(efhc_command, tmp_path, name):
    (tmp_path / "file").touch()
    place = {"XDG_CACHE_HOME": str(tmp_path / name), "MPLCONFIGDIR": str(tmp_path)}
    done = efhc_command(*RUN, "--out", tmp_path / "out", **place)
    assert (done.returncode, done.stderr) == (0, "")


def truncate(files):
    for file in files:
        os.truncate(file, file.stat().st_size // 2)


def exchange(files):
    contents = [file.read_bytes() for file in files]
    for file, content in zip(files, [*contents[1:], contents[0]], strict=True):
        file.write_bytes(content)


@pytest.mark.parametrize("damage", [truncate, exchange])
def test_damaged_programs_are_compiled_again(efhc_command, tmp_path, damage):
    first, second = (tmp_path / name for name in ("first", "second"))
    kept = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    assert efhc_command(*RUN, "--out", first, **kept).returncode == 0
    files = sorted((tmp_path / "cache" / "efhc_jax" / "xla").glob("*-cache"))
    assert len(files) > 1
    damage(files)
    damaged = {file: file.read_bytes() for file in files}
    done = efhc_command(*RUN, "--out", second, **kept)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(file.read_bytes() != content for file, content in damaged.items()), "written again"
    one, other = (efhc.load(*folder.glob("*.nc")) for folder in (first, second))
    assert one.equals(other)


def test_programs_are_read_again_as_they_were_written(tmp_path):
    """The real cache of JAX: also where it has changed inside, this must still be how it works."""
    from jax._src import compilation_cache

    before = compilation_cache.LRUCache
    try:
        caches._seal_programs(tmp_path / "ours")
        ours, theirs = (
            compilation_cache.get_file_cache(str(tmp_path / n))[0] for n in ("ours", "theirs")
        )
        for cache in (ours, theirs):
            cache.put("one", b"program")
            assert cache.get("one") == b"program"
            assert cache.get("two") is None
        (tmp_path / "ours" / "one-cache").rename(tmp_path / "ours" / "two-cache")
        assert ours.get("two") is None
        assert (tmp_path / "theirs" / "one-cache").read_bytes() == b"program"
    finally:
        compilation_cache.LRUCache = before


@pytest.mark.parametrize("platform", ["cuda", "bogus", "bogus,cpu"])
def test_a_platform_that_is_not_here(efhc_command, tmp_path, platform):
    done = efhc_command(*RUN, "--out", tmp_path / "out", JAX_PLATFORMS=platform)
    assert done.returncode == 2
    assert done.stderr.startswith("efhc: error: ")
    assert done.stderr.count("\n") == 1
    assert "JAX_PLATFORMS=" in done.stderr
    if "," not in platform:
        assert done.stderr.endswith("; unset it, or set it to cpu\n")
    assert not (tmp_path / "out").exists()
