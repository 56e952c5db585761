"""Shared by all tests: small problems, 64-bit where numbers are compared, a compilation cache."""

import gc
import os
import signal
from pathlib import Path

_MOST_MEMORY = 2 * 10**9  # bytes of a process
_CACHE = Path(__file__).parents[1] / ".jax_cache"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.5")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MPLBACKEND", "agg")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell script runs the tests in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

import hypothesis
import jax
import numpy as np
import pytest

from efhc_jax.compressors import COMPRESSORS
from efhc_jax.data import Dataset
from efhc_jax.experiment.families import FAMILIES

pytest_plugins = ["needs"]
hypothesis.settings.register_profile("repo", deadline=None, derandomize=True, max_examples=60)
hypothesis.settings.load_profile("repo")


@pytest.fixture(scope="module", autouse=True)
def little_memory():
    """Forget compiled programs between modules when they take much: those of all tests are gigabytes."""
    yield
    pages = Path("/proc/self/statm")
    if pages.exists() and int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") > _MOST_MEMORY:
        jax.clear_caches()
        gc.collect()


@pytest.fixture(autouse=True)
def registries():
    """Members that a test registers are gone after it."""
    every = [*(family.registry for family in FAMILIES.values()), COMPRESSORS]
    before = [list(registry) for registry in every]
    yield
    for registry, names in zip(every, before, strict=True):
        for name in [name for name in registry if name not in names]:
            del registry[name]


@pytest.fixture
def x64():
    """Numbers in 64 bits, to compare with the oracle."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="session")
def tiny():
    """Forty 3×3 images in four classes: small enough for an oracle made of Python loops."""
    rng = np.random.default_rng(0)
    labels = np.tile(np.arange(4), 15).astype(np.int32)
    prototypes = rng.integers(0, 256, (4, 3, 3))
    noise = rng.integers(-60, 61, (60, 3, 3))
    images = np.clip(prototypes[labels] + noise, 0, 255).astype(np.uint8)
    return Dataset("tiny", images[:40], labels[:40], images[40:], labels[40:])
