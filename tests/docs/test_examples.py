"""The examples in docstrings and in the documentation are true."""

import doctest
import importlib
import pkgutil
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import efhc_jax
from efhc_jax.cli import main

ROOT = Path(__file__).parents[2]
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


@pytest.fixture
def short_runs(monkeypatch):
    """Fewer iterations than the examples ask for."""
    from efhc_jax import Experiment

    original = Experiment.__post_init__

    def short(self):
        object.__setattr__(self, "iterations", min(self.iterations, 30))
        object.__setattr__(self, "eval_every", 15)
        original(self)

    monkeypatch.setattr(Experiment, "__post_init__", short)


@pytest.mark.parametrize(
    "page", ["README.md", "docs/extending.md", "docs/results.md", "docs/networks.md", "docs/theorem.md"]
)
def test_python_blocks_of_the_documentation_run(page, short_runs, tmp_path, monkeypatch):
    """What a block defines, the next ones see."""
    monkeypatch.chdir(tmp_path)  # for what they write
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (60, 28, 28), dtype=np.uint8), np.tile(np.arange(10), 6)
    names = {
        "efhc": efhc_jax,
        **dict.fromkeys(["train_images", "test_images"], images),
        **dict.fromkeys(["train_labels", "test_labels"], labels.astype(np.int32)),
    }
    run_blocks(page, names)


def test_the_tutorial_reads_what_its_command_writes(short_runs, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tiny = efhc_jax.Experiment(dataset="synthetic", devices=3)
    efhc_jax.sweep(tiny, out="out/compare", policy=["efhc", "zt"], seed=range(2))
    run_blocks("docs/tutorial.md", {})
    assert re.search(r"efhc: .* points \(", capsys.readouterr().out)


def run_blocks(page, names):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(block, names)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("policy", "thrifty 0.1: transmission time"),
        ("method", "step 1.2: consensus error"),
        ("dynamics", "awake 20% of the time: consensus error"),
        ("graph", "two_rooms: consensus error"),
        ("model", "accuracy"),
        ("dataset", "efhc: accuracy"),
    ],
)
def test_one_file_adds_a_member(kind, said, short_runs, capsys):
    runpy.run_path(str(ROOT / "examples" / f"add_{kind}.py"), run_name="__main__")
    assert said in capsys.readouterr().out


def test_all_of_them_at_once_on_the_command_line(short_runs, tmp_path):
    """By the names that their files give them."""
    kinds = ("policy", "method", "dynamics", "graph", "model", "dataset")
    files = [str(ROOT / "examples" / f"add_{kind}.py") for kind in kinds]
    words = "--policy thrifty --policy.savings 3 --dynamics duty_cycle --dynamics.cycle 10"
    words += " --method over_relaxed --method.step 0.5"
    words += " --graph two_rooms --dataset stripes --model perceptron --devices 4 --iterations 30"
    assert main(["run", "--members", *files, *words.split(), "--out", str(tmp_path)]) == 0
    [written] = tmp_path.glob("*.nc")
    stored = efhc_jax.Experiment.from_json(efhc_jax.load(written).attrs["experiment"])
    chosen = (stored.policy, stored.method, stored.dynamics, stored.graph, stored.dataset, stored.model)
    assert chosen == ("thrifty", "over_relaxed", "duty_cycle", "two_rooms", "stripes", "perceptron")
    own = (stored["policy.savings"], stored["method.step"], stored["dynamics.cycle"])
    assert own == (3.0, 0.5, 10)


def test_the_example_files_are_the_papers_settings():
    svm = efhc_jax.Experiment.from_toml(ROOT / "examples" / "paper_svm.toml")
    assert svm == efhc_jax.Experiment()
    lenet5 = efhc_jax.Experiment.from_toml(ROOT / "examples" / "paper_lenet5.toml")
    assert (lenet5.model, lenet5.labels_per_device, lenet5.weak_fraction) == ("lenet5", 2, 0.8)
