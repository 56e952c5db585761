"""The examples in docstrings and in the documentation are true."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

import efhc_jax

ROOT = Path(__file__).parents[1]
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(efhc_jax.__path__, "efhc_jax.")
    if not module.name.endswith("__main__")
)


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    found = doctest.testmod(importlib.import_module(name))
    assert found.failed == 0


def test_most_of_the_public_functions_have_an_example():
    attempted = sum(doctest.testmod(importlib.import_module(name)).attempted for name in MODULES)
    assert attempted > 40


@pytest.mark.parametrize(
    "page", ["README.md", "docs/extending.md", "docs/results.md", "docs/networks.md"]
)
def test_python_blocks_of_the_documentation_run(page, monkeypatch):
    """With fewer iterations; what a block defines, the next ones see."""
    from efhc_jax import MODELS, POLICIES, Experiment
    from efhc_jax.graphs import GRAPHS

    original = Experiment.__post_init__

    def short(self):
        object.__setattr__(self, "iterations", min(self.iterations, 30))
        object.__setattr__(self, "eval_every", 15)
        original(self)

    monkeypatch.setattr(Experiment, "__post_init__", short)
    families = POLICIES, MODELS, GRAPHS
    before = [set(family) for family in families]
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (60, 28, 28), dtype=np.uint8), np.tile(np.arange(10), 6)
    names = {
        "efhc": efhc_jax,
        **dict.fromkeys(["train_images", "test_images"], images),
        **dict.fromkeys(["train_labels", "test_labels"], labels.astype(np.int32)),
    }
    try:
        for block in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL):
            exec(block, names)
    finally:
        for family, known in zip(families, before, strict=True):
            for name in set(family) - known:
                del family[name]


def test_the_example_files_are_the_papers_settings():
    svm = efhc_jax.Experiment.from_toml(ROOT / "examples" / "paper_svm.toml")
    assert svm == efhc_jax.Experiment()
    lenet5 = efhc_jax.Experiment.from_toml(ROOT / "examples" / "paper_lenet5.toml")
    assert (lenet5.model, lenet5.labels_per_device, lenet5.heterogeneity) == ("lenet5", 2, 0.8)
