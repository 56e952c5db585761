"""Checks of the installation, with advice on problems."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import xarray

    from efhc_jax.experiment.experiment import Experiment

_LEAST_MEMORY = 2e9
_LEAST_DISK = 1e9
_NO_CACHE = "programs are compiled again each time; set XDG_CACHE_HOME to a folder that you can write to"


class Check(NamedTuple):
    """The result of one check."""

    name: str
    state: str  # "ok", "note" or "problem"
    found: str
    advice: str = ""


def verdict(checks: list[Check]) -> str:
    """Summary of all checks."""
    counts = {state: sum(check.state == state for check in checks) for state in ("problem", "note")}
    words = {state: f"{count} {state}{'s' * (count != 1)}" for state, count in counts.items()}
    if not counts["problem"]:
        words["problem"] = "no problems"
    return f"{words['problem']}, {words['note']}" if counts["note"] else words["problem"]


def diagnose() -> list[Check]:
    """Run all checks; a check that raises an unexpected error is a problem as well."""
    checks: tuple[Callable[[], Check | list[Check]], ...] = (
        *(_python, _packages, _accelerators, _memory, _disk, _cache),
        *(_datasets, _extras, _self_test),
    )
    return [found for check in checks for found in _guarded(check)]


def _guarded(check: Callable[[], Check | list[Check]]) -> list[Check]:
    try:
        found = check()
    except Exception as error:
        name = check.__name__.strip("_").replace("_", "-")
        found = Check(name, "problem", f"{type(error).__name__}: {error}", "install efhc-jax again")
    return found if isinstance(found, list) else [found]


def _python() -> Check:
    return Check("Python", "ok", f"{platform.python_version()} on {platform.platform()}")


def _packages() -> Check:
    """Whether the installed packages satisfy the requirements."""
    from packaging.requirements import Requirement

    wrong = []
    for text in importlib.metadata.requires("efhc-jax") or []:
        wanted = Requirement(text)
        if wanted.marker and not wanted.marker.evaluate({"extra": ""}):
            continue
        try:
            version = importlib.metadata.version(wanted.name)
        except importlib.metadata.PackageNotFoundError:
            wrong.append(f"{wanted.name} is missing")
            continue
        if not wanted.specifier.contains(version, prereleases=True):
            wrong.append(f"{wanted.name} {version} is not {wanted.specifier}")
    if wrong:
        return Check("packages", "problem", "; ".join(wrong), "pip install --upgrade efhc-jax")
    names = ("efhc-jax", "jax", "jaxlib", "numpy", "flax", "xarray")
    return Check("packages", "ok", ", ".join(f"{n} {importlib.metadata.version(n)}" for n in names))


def _accelerators() -> Check:
    import jax

    devices = jax.devices()
    if devices[0].platform != "cpu":
        kinds = sorted({f"{device.platform} ({device.device_kind})" for device in devices})
        return Check("accelerators", "ok", f"{len(devices)} × {', '.join(kinds)}")
    cores = os.cpu_count() or 1
    found = f"none, {cores} CPU core{'s' * (cores > 1)}"
    if shutil.which("nvidia-smi") or Path("/proc/driver/nvidia").exists():
        advice = 'there is an NVIDIA driver: pip install "efhc-jax[cuda12]" to use the GPU'
        return Check("accelerators", "note", found, advice)
    return Check("accelerators", "ok", found)


def _memory() -> Check:
    from efhc_jax.runs.machine import free_memory, gigabytes

    free = free_memory()
    found = f"{gigabytes(free)} free"
    if free < _LEAST_MEMORY:
        return Check("memory", "problem", found, f"free at least {gigabytes(_LEAST_MEMORY)}")
    return Check("memory", "ok", found)


def _disk() -> Check:
    from efhc_jax.runs.machine import gigabytes

    here = Path.cwd()
    free = shutil.disk_usage(here).free
    found = f"{gigabytes(free)} free in {here}"
    if not _writable(here):
        return Check("disk", "problem", f"{here} cannot be written to", "use another folder, or --out")
    if free < _LEAST_DISK:
        return Check("disk", "problem", found, f"free at least {gigabytes(_LEAST_DISK)}")
    return Check("disk", "ok", found)


def _cache() -> Check:
    """The folder for compiled programs and downloaded data, which is optional."""
    from efhc_jax.disk.caches import cache_folder

    folder = cache_folder()
    if folder is None:
        return Check("cache", "note", "no home directory and no XDG_CACHE_HOME", _NO_CACHE)
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir() or not _writable(there):
        return Check("cache", "note", f"{folder} cannot be written to", _NO_CACHE)
    return Check("cache", "ok", str(folder))


def _writable(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _datasets() -> list[Check]:
    from efhc_jax.data import available_datasets

    found = []
    for entry in available_datasets():
        name = f"data: {entry.name}"
        if entry.found:
            found.append(Check(name, "ok", entry.where))
        else:  # an incomplete or damaged dataset is a problem, a missing one is not
            state = "problem" if entry.where else "note"
            what = (
                f"not usable: {entry.where}" if entry.where else "not found; the others do not need it"
            )
            _, *ways = entry.note.split("\n")  # the first line repeats that it was not found
            advice = "\n".join(["to get it, do one of these:", *ways]) if ways else entry.note
            found.append(Check(name, state, what, advice))
    return found


def _extras() -> list[Check]:
    found = []
    for extra, package in (("tensorboard", "tensorboardX"), ("wandb", "wandb")):
        try:
            version = importlib.metadata.version(package)
            found.append(Check(f"extra: {extra}", "ok", f"{package} {version}"))
        except importlib.metadata.PackageNotFoundError:
            advice = f'for --log {extra}: pip install "efhc-jax[{extra}]"'
            found.append(Check(f"extra: {extra}", "note", "not installed", advice))
    return found


def _self_test() -> Check:
    """Two short runs of the engine, compared and checked for its invariants."""
    from efhc_jax.experiment.experiment import Experiment
    from efhc_jax.runs.simulation import simulate

    began = time.perf_counter()
    experiment = Experiment(dataset="synthetic", iterations=60, eval_every=30, r=500.0)
    run = simulate(experiment, trace=True, progress=False)
    again = simulate(experiment, trace=True, progress=False)
    failed = [] if run.equals(again) else ["a second run gave a different result"]
    failed += _broken_properties(experiment, run)
    seconds = time.perf_counter() - began
    if failed:
        advice = "results cannot be trusted here: try JAX_PLATFORMS=cpu, then another version of jaxlib"
        return Check("self-test", "problem", "; ".join(failed), advice)
    found = f"120 iterations in {seconds:.1f} s: finite, P doubly stochastic, W ← PW − αG, reproducible"
    return Check("self-test", "ok", found)


def _broken_properties(experiment: Experiment, run: xarray.Dataset) -> list[str]:
    """Descriptions of the invariants that a trace violates."""
    import jax

    from efhc_jax.engine.mixing import transition_matrix
    from efhc_jax.runs.prepare import step_sizes

    weights = run.weights.values.astype(np.float64)
    if not np.isfinite(weights).all():
        return ["a model is not finite"]
    failed = []
    matrices = jax.vmap(transition_matrix)(run.adjacency.values, run.used_links.values)
    mixing = np.asarray(matrices, np.float64)
    sums = np.stack([mixing.sum(1), mixing.sum(2)])
    if np.abs(sums - 1).max() > 1e-5 or mixing.min() < 0:
        failed.append("P is not doubly stochastic")
    moved = np.linalg.norm(weights[1:] - mixing @ weights[:-1], axis=2)
    rate = step_sizes(experiment, len(moved))
    if not np.allclose(moved, rate[:, None] * run.gradient_norm.values, rtol=1e-2, atol=1e-3):
        failed.append("W(k+1) is not P(k)W(k) − α(k)G(k)")
    return failed
