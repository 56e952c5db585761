"""A machine of its own for each test, and small datasets on it."""

from pathlib import Path

import pytest
from small_set import SmallSet, write_small

from efhc_jax.data import fashion_mnist
from efhc_jax.data.idx import Pixels, read_idx_directory


@pytest.fixture(autouse=True)
def private_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test sees or touches the user's cache, home or settings."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("EFHC_DATA_DIR", raising=False)
    monkeypatch.delenv("TFDS_DATA_DIR", raising=False)


@pytest.fixture
def no_debian(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without the Debian package."""
    monkeypatch.setattr(fashion_mnist, "DEBIAN_DIRECTORY", tmp_path / "no-such-package")


@pytest.fixture(scope="session")
def full_arrays() -> list[Pixels]:
    """The four arrays of the full set; a machine that runs the tests has the Debian package."""
    return read_idx_directory(fashion_mnist.DEBIAN_DIRECTORY, fashion_mnist.FILES, "debian")


@pytest.fixture
def small(full_arrays: list[Pixels], tmp_path: Path) -> SmallSet:
    """300 training and 60 test images, gzipped as the originals are."""
    return write_small(tmp_path / "small", full_arrays, skip=0)


@pytest.fixture
def other(full_arrays: list[Pixels], tmp_path: Path) -> SmallSet:
    """As many images as `small`, but others: what a wrong source would give."""
    return write_small(tmp_path / "other", full_arrays, skip=1000)
