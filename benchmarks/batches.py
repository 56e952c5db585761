"""Cost of a run-iteration for batches of 1 to 256 SVM runs, and the time of a whole grid.

Usage: python -m benchmarks.batches [--grid]

Prints a table; with --grid also compile seconds and run seconds of 360 runs of 1,000 iterations. It runs
unchanged on GPUs.
"""

from __future__ import annotations

import argparse
import time

import jax
import jax.numpy as jnp

import efhc_jax as efhc
from efhc_jax.layout import choose_layout, place_runs, place_shared
from efhc_jax.program import Samples, Spec, advance, initialise, make_spec, record_summary
from efhc_jax.scenario import prepare, stack
from efhc_jax.sweeps import Grid, sweep

ITERATIONS = 200
POLICIES = ("efhc", "gt", "zt", "rg")


def fitting_spec(experiment: efhc.Experiment, data: efhc.Dataset, runs: int) -> Spec:
    """The program that a sweep would use for this many runs."""
    spec = make_spec(experiment, data)
    layout, whole = choose_layout(experiment.devices, spec.rules.model.size).fitted(runs)
    if whole != runs:
        raise SystemExit(f"{runs} runs would be filled up to {whole}; choose another number")
    return spec._replace(layout=layout)


def microseconds(experiment: efhc.Experiment, data: efhc.Dataset, runs: int, repeats: int) -> float:
    """Best time of a run-iteration in a batch of `runs`, evaluation excluded."""
    spec = fitting_spec(experiment, data, runs)
    variants = [experiment.replace(seed=run // 4, policy=POLICIES[run % 4]) for run in range(runs)]
    hypers = place_runs(spec.layout, stack([prepare(one, data) for one in variants]))
    train = place_shared(spec.layout, Samples(data.train_images, data.train_labels))
    states = initialise(spec, hypers)
    best = float("inf")
    for attempt in range(repeats + 1):
        began = time.perf_counter()
        states, _, recorded = advance(
            spec, record_summary, ITERATIONS, hypers, states, None, jnp.int32(0), train
        )
        jax.block_until_ready((states, recorded))
        if attempt:
            best = min(best, time.perf_counter() - began)
    return best / (ITERATIONS * runs) * 1e6


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, nargs="+", default=[1, 4, 16, 64, 256])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--grid", action="store_true", help="time a sweep of 360 runs too")
    options = parser.parse_args()
    data = efhc.load_dataset("fashion_mnist")
    experiment = efhc.Experiment()
    device = jax.devices()[0]
    print(f"{len(jax.devices())} × {device.device_kind} ({device.platform}), SVM, m = 10, batch 1")
    print("runs in a batch   µs a run-iteration   of a run alone")
    alone = None
    for runs in options.runs:
        cost = microseconds(experiment, data, runs, options.repeats)
        alone = alone or cost
        print(f"{runs:15d}   {cost:18.1f}   {cost / alone:14.2f}", flush=True)
    if options.grid:
        time_grid(data)


def time_grid(data: efhc.Dataset) -> None:
    """The 4 × 3 × 3 × 2 × 5 grid twice: the first time with compilation, the second without."""
    base = efhc.Experiment(iterations=1000, eval_every=1000)
    axes = {
        "policy": list(POLICIES),
        "r": [5.0, 50.0, 500.0],
        "heterogeneity": [0.0, 0.4, 0.8],
        "connectivity": [0.4, 0.8],
        "seed": range(5),
    }
    runs = len(Grid.of(base, axes).experiments)
    before = advance._cache_size()
    seconds = []
    for _ in range(2):
        began = time.perf_counter()
        sweep(base, data, progress=False, **axes)
        seconds.append(time.perf_counter() - began)
    print(f"{runs} runs of 1,000 iterations: {seconds[1]:.1f} s to run, evaluations included")
    print(f"compiling before that: {seconds[0] - seconds[1]:.1f} s")
    print(f"programs compiled for the steps: {advance._cache_size() - before}")


if __name__ == "__main__":
    main()
