"""A machine of its own for each test, and small datasets on it."""

from pathlib import Path

import pytest

from efhc_jax.data import fashion_mnist, mini
from efhc_jax.data.idx import Pixels
from efhc_jax.data.npz import read_npz
from small_set import SmallSet, write_small


@pytest.fixture(autouse=True)
def private_machine(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No test sees or touches the user's cache, home or settings, unless it needs the full set."""
    if request.node.get_closest_marker("full_data"):
        return
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("EFHC_DATA_DIR", raising=False)
    monkeypatch.delenv("TFDS_DATA_DIR", raising=False)


@pytest.fixture
def no_debian(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without the Debian package."""
    monkeypatch.setattr(fashion_mnist, "DEBIAN_DIRECTORY", tmp_path / "no-such-package")


@pytest.fixture(scope="session")
def real_arrays() -> list[Pixels]:
    """Real images of Fashion-MNIST, in the form of its four files: those that come with the package."""
    return read_npz(mini.PATH)


@pytest.fixture
def small(real_arrays: list[Pixels], tmp_path: Path) -> SmallSet:
    """300 training and 60 test images, gzipped as the originals are."""
    return write_small(tmp_path / "small", real_arrays, skip=0)


@pytest.fixture
def other(real_arrays: list[Pixels], tmp_path: Path) -> SmallSet:
    """As many images as `small`, but others: what a wrong source would give."""
    return write_small(tmp_path / "other", real_arrays, skip=500)
