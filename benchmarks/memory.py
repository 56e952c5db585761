"""Estimated and measured peak memory of a process, in settings that need it for different things.

`python -m benchmarks.memory` prints the table of the documentation; arguments select settings by name.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.processes import in_own_process

if TYPE_CHECKING:
    from efhc_jax.cli.run import Run


class Setting(NamedTuple):
    """A command whose memory is measured."""

    name: str
    command: str


_MANY = "--dataset synthetic --split iid --iterations 20 --eval-every 10"
SETTINGS = [
    Setting("SVM, 10 devices", "run --dataset synthetic --iterations 2000 --eval-every 500"),
    Setting("the same on Fashion-MNIST", "run --iterations 1000 --eval-every 500"),
    Setting(
        "64 runs of it",
        "sweep --dataset synthetic --iterations 1000 --eval-every 500 --policy efhc gt zt rg --seeds 16",
    ),
    Setting("mini-batches of 32", "run --dataset synthetic --iterations 500 --batch-size 32"),
    Setting("8 budgets, 500 devices", f"run {_MANY} --devices 500 --connectivity 0.1 --budgets "
            "0.1 0.2 0.3 0.4 0.5 1 2 3"),
    Setting(
        "audit, 50 devices, 20,000 iterations",
        "run --dataset synthetic --split iid --devices 50 --iterations 20000 --eval-every 5000 --audit",
    ),
    Setting("LeNet5, 10 devices", "run --dataset synthetic --model lenet5 --iterations 100"),
    Setting(
        "8 runs of it",
        "sweep --dataset synthetic --model lenet5 --iterations 100 --policy efhc zt --seeds 4",
    ),
    Setting("LeNet5, mini-batches of 32", "run --dataset synthetic --model lenet5 --iterations 20 "
            "--batch-size 32"),
    Setting("geometric, 1,000 devices", f"run {_MANY} --devices 1000 --connectivity 0.06"),
    Setting("mobility, 1,000 devices", f"run {_MANY} --devices 1000 --connectivity 0.06 "
            "--dynamics mobility"),
    Setting("star, 2,000 devices", f"run {_MANY} --devices 2000 --graph star"),
    Setting("complete, 2,000 devices", f"run {_MANY} --devices 2000 --graph complete"),
    Setting(
        "ring, 5,000 devices, Fashion-MNIST",
        "run --split iid --devices 5000 --graph ring --iterations 10 --eval-every 10",
    ),
    # The factors of the estimate were not fitted to these.
    Setting("4 runs, 1,000 devices, two densities", f"sweep {_MANY} --devices 1000 "
            "--connectivity 0.06 0.1 --seeds 2"),
    Setting("LeNet5, 100 devices, Fashion-MNIST", "run --split iid --model lenet5 --devices 100 "
            "--connectivity 0.2 --iterations 10 --eval-every 10"),
    Setting("random links that fail, 1,500 devices", f"run {_MANY} --devices 1500 "
            "--graph erdos_renyi --connectivity 0.05 --dynamics failures"),
]  # fmt: skip


def measure(setting: Setting) -> tuple[int, int]:
    """The estimate of a setting and the peak of a process with nothing else, in bytes."""
    return in_own_process(measure_here, setting)


def measure_here(setting: Setting) -> tuple[int, int]:
    """As `measure`, in this process, which must not have imported JAX yet."""
    with tempfile.TemporaryDirectory() as folder:
        return _measure(setting, folder)


def _measure(setting: Setting, folder: str) -> tuple[int, int]:
    os.environ["XDG_CACHE_HOME"] = folder  # compiling is part of the peak
    os.environ.pop("JAX_COMPILATION_CACHE_DIR", None)
    from efhc_jax.cli import main, parse
    from efhc_jax.runs.machine import peak_memory

    words = [*setting.command.split(), "--out", f"{folder}/out"]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        code = main(words)
    if code:
        raise SystemExit(f"{setting.name}: {said.getvalue()}")
    peak = peak_memory()
    printed = re.search(r"about ([\d.]+) GB of memory in all", said.getvalue())
    return round(1e9 * float(printed[1])) if printed else _estimate(parse(words)), peak


def _estimate(command: Run) -> int:
    """The estimate of a single run, which does not print it."""
    from efhc_jax.data import load_dataset
    from efhc_jax.engine.recording import record_audit, record_summary
    from efhc_jax.engine.sharding import choose_layout_of_one
    from efhc_jax.runs.memory import estimate
    from efhc_jax.runs.prepare import make_spec

    experiment = command.experiment
    data = load_dataset(experiment.dataset)
    spec = make_spec(experiment, data, choose_layout_of_one(experiment.devices))
    record = record_audit if command.audit else record_summary
    return estimate([experiment], data, spec, record).in_process(1)


def main(words: list[str]) -> None:
    """Measure all settings, or those whose names contain one of the words."""
    print("| setting | estimate | peak | ratio |\n| --- | --- | --- | --- |")
    for setting in SETTINGS:
        if not words or any(word in setting.name for word in words):
            needed, peak = measure(setting)
            print(
                f"| {setting.name} | {needed / 1e9:.2f} GB | {peak / 1e9:.2f} GB "
                f"| {needed / peak:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
