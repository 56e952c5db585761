"""The programs that accelerators get: compiled and counted, and measured where there is one."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from benchmarks.accelerators.compilers import check_installed, with_compilers
from benchmarks.accelerators.targets import H100, TARGETS, Target
from benchmarks.accelerators.workloads import Work
from benchmarks.processes import in_own_process, machine, now, versions
from benchmarks.report import Verdict

ALONE = [
    Work("svm", 1),
    Work("svm", 64),
    Work("svm", 512),
    Work("svm", 64, batch_size=32),
    Work("lenet5", 1),
    Work("lenet5", 16),
    Work("lenet5", 64),
    Work("lenet5", 16, batch_size=32),
    Work("cnn", 1, devices=20),
    Work("cnn", 1, devices=20, batch_size=32),
    Work("svm", 1, devices=1000),
    Work("svm", 1, devices=10_000),
    Work("svm", 64, evaluates=True),
    Work("lenet5", 16, evaluates=True),
]
SHARED = [
    Work("svm", 512, accelerators=8),
    Work("svm", 512, accelerators=64),
    Work("lenet5", 64, accelerators=8),
    Work("svm", 1, devices=10_000, accelerators=8, by_rows=True),
    Work("svm", 1, devices=10_048, accelerators=64, by_rows=True),
]
# Compiled for an H100 alone, because others would show the same.
METHODS = [
    Work("svm", 64, method=method)
    for method in ("copies", "choco", "sparq", "tracking", "d2", "extra", "qg_momentum")
]
QUICK = [Work("svm", 1), Work("svm", 64), Work("lenet5", 16), Work("svm", 64, accelerators=8)]
_PROCESSES = 2


def run(quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Compile every program for every accelerator, and measure those that this machine can run."""
    check_installed()
    began, clock = now(), time.perf_counter()
    works = QUICK if quick else ALONE + SHARED + METHODS
    say(f"compiling {len(works)} programs for {', '.join(target.name for target in TARGETS)}")
    jobs = [
        (target, works_for(target, works)[part::_PROCESSES])
        for target in TARGETS
        for part in range(_PROCESSES)
    ]
    with ThreadPoolExecutor(_PROCESSES) as pool:
        parts = list(pool.map(lambda job: with_compilers(examine_all, *job), jobs))
    found = sorted((one for part in parts for one in part), key=_order)
    here = in_own_process(measure, [work for work in works if work.accelerators == 1])
    return {
        "suite": "accelerators",
        "quick": quick,
        "began": began,
        "seconds": time.perf_counter() - clock,
        "versions": versions(),
        "machines": [here["machine"]],
        "programs": found,
        "measured": here["measured"],
        "verdicts": [verdict.to_dict() for verdict in verdicts(found)],
    }


def works_for(target: Target, works: list[Work]) -> list[Work]:
    """The programs that are compiled for an accelerator and can be counted.

    That of an evaluation on a TPU does not say how often its loop is executed.
    """
    counted = [work for work in works if target.platform != "tpu" or not work.evaluates]
    return [work for work in counted if target == H100 or work not in METHODS]


def examine_all(target: Target, works: list[Work]) -> list[dict[str, Any]]:
    """The counts of several programs on one accelerator."""
    from benchmarks.accelerators.programs import examine

    return [examine(work, target) for work in works]


def _order(found: dict[str, Any]) -> tuple[int, int]:
    names = [target.name for target in TARGETS]
    works = [work.name for work in ALONE + SHARED + METHODS + QUICK]
    return names.index(found["target"]), works.index(found["work"])


def measure(works: list[Work]) -> dict[str, Any]:
    """Seconds per iteration or evaluation on the accelerator of this machine; nothing without one."""
    import jax

    platform = jax.default_backend()
    measured = [] if platform == "cpu" else [measure_one(work) for work in works]
    return {"machine": machine(), "measured": measured}


def measure_one(work: Work, rounds: int = 5) -> dict[str, Any]:
    """The best time of a program, on whatever JAX runs on here."""
    from benchmarks.accelerators.workloads import ITERATIONS, experiment_of, links_of
    from benchmarks.data import random_images
    from benchmarks.ours import batch_of, evaluation, one_run
    from benchmarks.timing import alternate

    data = random_images(28, max(60_000, 2 * work.devices), test_samples=10_000)
    experiment = experiment_of(work)
    if work.runs == 1:
        ours = one_run(experiment, data, ITERATIONS, links_of(work))
    else:
        ours = batch_of(experiment, data, ITERATIONS, work.runs)
    contender = evaluation(ours, data) if work.evaluates else ours.contender()
    best = alternate({"ours": contender}, rounds)["ours"].best
    return {"work": work.name, "seconds": best / (1 if work.evaluates else ITERATIONS)}


# Bounds ----------------------------------------------------------------------------------------------


class Bounds(NamedTuple):
    """Bounds of a program; None without one."""

    launches: float | None = None
    traffic: float | None = None  # times the least
    temporary_bytes: float | None = None
    flop_bound: float | None = None  # modelled time, times that of the operations alone


BOUNDS = {
    Work("svm", 1): Bounds(launches=8),
    Work("svm", 64): Bounds(launches=8, traffic=1.6),
    Work("lenet5", 16): Bounds(launches=35, traffic=3.5),
    Work("lenet5", 16, batch_size=32): Bounds(launches=40, temporary_bytes=0.4e9),
    Work("svm", 64, evaluates=True): Bounds(flop_bound=1.2),
    Work("lenet5", 16, evaluates=True): Bounds(flop_bound=1.2),
    # Of a method the least is its own state, read and written once.
    Work("svm", 64, method="copies"): Bounds(launches=10, traffic=2.4),
    Work("svm", 64, method="choco"): Bounds(launches=29, traffic=5.2, temporary_bytes=30e6),
    Work("svm", 64, method="tracking"): Bounds(launches=11, traffic=1.9, temporary_bytes=65e6),
    Work("svm", 64, method="d2"): Bounds(launches=10, traffic=1.5, temporary_bytes=45e6),
    Work("svm", 64, method="extra"): Bounds(launches=9, traffic=1.4, temporary_bytes=45e6),
    Work("svm", 64, method="qg_momentum"): Bounds(launches=10, traffic=2.2, temporary_bytes=45e6),
}


def verdicts(programs: list[dict[str, Any]]) -> list[Verdict]:
    """Every bound with the value for an H100."""
    bounds = {work.name: each for work, each in BOUNDS.items()}
    found = []
    for one in programs:
        if one["target"] != H100.name or one["work"] not in bounds:
            continue
        wanted = bounds[one["work"]]
        for what, value, bound in (
            ("launches", one["launches"], wanted.launches),
            ("traffic, × least", one["bytes"] / one["least_bytes"], wanted.traffic),
            ("temporaries, bytes", one["temporary_bytes"], wanted.temporary_bytes),
            ("modelled time, × FLOP alone", _over_flops(one), wanted.flop_bound),
        ):
            if bound is not None:
                found.append(Verdict(f"{one['work']}, H100", what, value, bound, at_least=False))
    return found


def _over_flops(one: dict[str, Any]) -> float:
    from benchmarks.limits import forward_flops

    if not one["evaluates"]:
        return float("nan")
    models = one["runs"] * (one["devices"] + 1)
    flops = models * 10_000 * forward_flops(one["model"], one["parameters"])
    return one["modelled_seconds"] / (flops / H100.flops)
