"""Time per iteration against m, runs in a batch, n and mini-batch size, with its limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.processes import in_own_process, machine, now, start, versions

AXES = {
    "devices": "number of devices m",
    "runs": "runs in a batch",
    "parameters": "number of parameters n",
    "batch_size": "samples in a mini-batch",
}
DEGREE = 10  # mean number of neighbours


class Point(NamedTuple):
    """One measurement; the axis names the field that varies along its line."""

    axis: str
    model: str = "svm"
    devices: int = 10
    runs: int = 1
    side: int = 28  # side of an image, which determines n
    batch_size: int = 1

    @property
    def iterations(self) -> int:
        """Number of iterations: even, and smaller if each takes longer."""
        work = self.devices * self.runs * self.side**2 * (30 if self.model == "lenet5" else 1)
        return int(np.clip(2 * (4_000_000 // (work * max(1, self.batch_size // 8))), 4, 200))

    @property
    def samples(self) -> int:
        """Number of training images: enough for every device."""
        return max(1000, 6 * self.devices, 2 * self.devices * self.batch_size)


def points(quick: bool) -> list[Point]:
    """All points, in lines from small to large."""
    if quick:
        devices, sides, runs = [10, 100, 1000], [8, 28, 64], [1, 4, 16]
        batches, lenet5_runs, lenet5_batches = [1, 8, 64], [1, 4], [1, 8]
    else:
        devices, sides = [10, 30, 100, 300, 1000, 3000, 10_000], [8, 16, 28, 64, 128, 256]
        runs, lenet5_runs = [1, 2, 4, 16, 64, 256], [1, 2, 4, 16]
        batches, lenet5_batches = [1, 4, 16, 64, 256], [1, 4, 16, 64]
    return [
        *(Point("devices", devices=m) for m in devices),
        *(Point("parameters", side=side) for side in sides),
        *(Point("batch_size", batch_size=size) for size in batches),
        *(Point("batch_size", "lenet5", batch_size=size) for size in lenet5_batches),
        *(Point("runs", runs=count) for count in runs),
        *(Point("runs", "lenet5", runs=count) for count in lenet5_runs),
    ]


def run(quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure all lines: single runs in one process, batches in another."""
    began, clock = now(), time.perf_counter()
    rounds = 2 if quick else 4
    alone = [point for point in points(quick) if point.runs == 1]
    batches = [point for point in points(quick) if point.runs > 1]
    say(f"{len(alone)} sizes of one run, with their limits")
    first = in_own_process(measure, alone, rounds)
    say(f"{len(batches)} sizes of batches, with their limits")
    second = in_own_process(measure, batches, rounds)
    grid = {}
    if not quick:
        say("a sweep of 360 runs, twice")
        grid = in_own_process(time_grid)
    found = first["points"] + second["points"]
    return {
        "suite": "scaling",
        "quick": quick,
        "began": began,
        "seconds": time.perf_counter() - clock,
        "versions": versions(),
        "machines": [first["machine"], second["machine"]],
        "product_rates": [first["product_rate"], second["product_rate"]],
        "points": found,
        "grid": grid,
        "verdicts": [],  # there are no targets
    }


def measure(wanted: list[Point], rounds: int) -> dict[str, Any]:
    """Measure some points in a process whose JAX has not started."""
    start(max(point.runs for point in wanted))
    return measure_here(wanted, rounds)


def measure_here(wanted: list[Point], rounds: int) -> dict[str, Any]:
    """The same in this process."""
    from benchmarks.limits import matrix_products, product_flops
    from benchmarks.timing import alternate
    from efhc_jax.engine.sharding import choose_layout

    layout = choose_layout(1, 1)
    products = alternate(matrix_products(layout), rounds)
    rate = max(product_flops(name, layout) / timing.best for name, timing in products.items())
    measured: dict[Point, dict[str, Any]] = {}
    for point in wanted:  # a point of several lines is measured once
        work = point._replace(axis="")
        if work not in measured:
            measured[work] = _measure_point(work, rounds, rate)
    found = [_placed(point, measured[point._replace(axis="")]) for point in wanted]
    return {"machine": machine(), "product_rate": rate, "points": found}


def _placed(point: Point, measured: dict[str, Any]) -> dict[str, Any]:
    """The measurement as a point of its line."""
    return measured | {"axis": point.axis, "x": measured[point.axis]}


def _measure_point(point: Point, rounds: int, product_rate: float) -> dict[str, Any]:
    from benchmarks.data import random_images
    from benchmarks.limits import iteration_flops, pass_over_models
    from benchmarks.ours import batch_of, one_run
    from benchmarks.timing import alternate
    from efhc_jax.experiment.experiment import Experiment

    data = random_images(point.side, point.samples)
    experiment = Experiment(
        model=point.model, devices=point.devices, batch_size=point.batch_size, graph="ring", split="iid"
    )
    if point.runs == 1:
        links = random_links(point.devices)
        ours = one_run(experiment, data, point.iterations, links)
    else:
        ours = batch_of(experiment, data, point.iterations, point.runs)
    passes = pass_over_models(ours.spec.layout, ours.progress.state.weights, point.iterations)
    timed = alternate({"ours": ours.contender(), "pass": passes}, rounds)
    _, recorded = ours.advanced(ours.fresh())
    used = float(recorded["links_used"].mean())
    flops = point.runs * iteration_flops(
        point.model, ours.parameters, point.devices, point.batch_size, used
    )
    share = 1 / point.iterations
    limits = {"memory": timed["pass"].best * share, "arithmetic": flops / product_rate}
    bound = max(limits, key=lambda name: limits[name])
    return point._asdict() | {
        "parameters": ours.parameters,
        "iterations": point.iterations,
        "compile_seconds": ours.compile_seconds,
        "memory_bytes": ours.memory,
        "links_used": used,
        "flops": flops,
        "timing": timed["ours"].to_dict(share),
        "pass": timed["pass"].to_dict(share),
        "limit": limits[bound],
        "bound": bound,
    }


def random_links(devices: int, degree: int = DEGREE) -> np.ndarray:
    """A connected graph (link, 2) of about this mean degree: several rings through all devices.

    For few devices the rings share links, so the degree is smaller.
    """
    rng = np.random.default_rng(devices)
    rings = [rng.permutation(devices) for _ in range(degree // 2)]
    pairs = np.concatenate([np.stack([ring, np.roll(ring, 1)], axis=1) for ring in rings])
    return np.unique(np.sort(pairs, axis=1), axis=0)


def time_grid() -> dict[str, Any]:
    """The times of the 4 × 3 × 3 × 2 × 5 grid, run with compilation and then without."""
    from benchmarks.data import images_of_paper
    from efhc_jax.engine.program import advance
    from efhc_jax.experiment.experiment import Experiment
    from efhc_jax.runs.grid import Grid
    from efhc_jax.runs.sweeps import sweep

    axes: dict[str, Any] = {
        "policy": ["efhc", "gt", "zt", "rg"],
        "r": [5.0, 50.0, 500.0],
        "weak_fraction": [0.0, 0.4, 0.8],
        "connectivity": [0.4, 0.8],
        "seed": range(5),
    }
    base = Experiment(iterations=1000, eval_every=1000)
    runs = len(Grid.of(base, axes).experiments)
    start(runs)
    data = images_of_paper(10_000)
    seconds = []
    for _ in range(2):
        began = time.perf_counter()
        sweep(base, data, progress=False, **axes)
        seconds.append(time.perf_counter() - began)
    return {
        "runs": runs,
        "iterations": base.iterations,
        "seconds": seconds[1],
        "compile_seconds": seconds[0] - seconds[1],
        "programs": advance._cache_size(),  # type: ignore[attr-defined]
    }
