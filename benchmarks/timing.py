"""Timing of several implementations of the same work: in alternating trials, after a warm-up."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

SHORTEST_TURN = 0.2  # seconds; shorter work is repeated within a trial
MOST_REPEATS = 50


class Contender(NamedTuple):
    """One implementation of the work.

    Attributes:
        work: does the work once, and returns when it is complete, also on an accelerator.
        prepare: creates the argument of `work`, which may be consumed; it is not timed.
    """

    work: Callable[[Any], Any]
    prepare: Callable[[], Any] = lambda: None


class Sample(NamedTuple):
    """Seconds for doing the work once, averaged over a trial."""

    wall: float
    cpu: float  # all threads of this process


class Timing(NamedTuple):
    """The times of a contender."""

    first: Sample  # the warm-up, including one-time costs
    samples: list[Sample]  # one per trial

    @property
    def best(self) -> float:
        """Wall time of the best trial in seconds, the one least disturbed by other processes."""
        return min(sample.wall for sample in self.samples)

    def to_dict(self, share: float = 1.0) -> dict[str, Any]:
        """The times for the JSON report, in seconds per given share of the work."""
        return {
            "first": self.first.wall * share,
            "best": self.best * share,
            "samples": [{"wall": one.wall * share, "cpu": one.cpu * share} for one in self.samples],
        }


def alternate(
    contenders: Mapping[str, Contender], rounds: int, shortest_turn: float = SHORTEST_TURN
) -> dict[str, Timing]:
    """Time all contenders in alternating trials.

    Each does the work once to warm up. Every round then has one trial of each, in an order that is
    reversed from round to round; short work is repeated within a trial.

    Example:
        >>> timings = alternate({"sleep": Contender(lambda _: time.sleep(0.01))}, 2, 0.0)
        >>> timings["sleep"].best >= 0.01
        True
    """
    first = {name: _turn(one, 1) for name, one in contenders.items()}
    repeats = {name: _repeats(_turn(one, 1), shortest_turn) for name, one in contenders.items()}
    samples: dict[str, list[Sample]] = {name: [] for name in contenders}
    order = list(contenders)
    with _no_garbage_collection():
        for _ in range(rounds):
            for name in order:
                samples[name].append(_turn(contenders[name], repeats[name]))
            order.reverse()
    return {name: Timing(first[name], samples[name]) for name in contenders}


def _repeats(once: Sample, shortest_turn: float) -> int:
    return min(MOST_REPEATS, max(1, math.ceil(shortest_turn / max(once.wall, 1e-6))))


def _turn(contender: Contender, repeats: int) -> Sample:
    wall = cpu = 0.0
    for _ in range(repeats):
        given = contender.prepare()
        began, began_cpu = time.perf_counter(), time.process_time()
        contender.work(given)
        wall += time.perf_counter() - began
        cpu += time.process_time() - began_cpu
    return Sample(wall / repeats, cpu / repeats)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
