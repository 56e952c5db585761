"""Progress bars for people, and one line a minute for logs."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

Report = Callable[[int], None]  # is told how many iterations have been done in all

_LINE_EVERY = 60.0  # seconds


@contextlib.contextmanager
def run_progress(iterations: int, title: str, show: bool | None = None) -> Iterator[Report]:
    """A bar with iterations/s and the time left, on standard error.

    Args:
        iterations: how many there are.
        title: what stands before the bar.
        show: True or False; by default only where a person can watch.
    """
    if show or (show is None and sys.stderr.isatty()):
        with _bar(title, iterations, lambda done: f"{done:,}/{iterations:,}") as report:
            yield report
    else:
        yield lambda done: None


@contextlib.contextmanager
def sweep_progress(runs: int, iterations: int, show: bool | None = None) -> Iterator[Report]:
    """The same over all runs of a sweep; away from a terminal, one line a minute.

    Args:
        runs: how many there are.
        iterations: of each.
        show: True for a bar, False for silence; by default what fits where it is shown.
    """

    def runs_done(done: int) -> str:
        return f"{done // iterations:,} of {runs:,} runs"

    if show or (show is None and sys.stderr.isatty()):
        with _bar("sweep", runs * iterations, runs_done) as report:
            yield report
    elif show is None:
        yield _lines(runs * iterations, runs_done)
    else:
        yield lambda done: None


def _lines(total: int, count: Callable[[int], str]) -> Report:
    """Write a line now and then: what is done, how fast, and how long it will take."""
    began = last = time.monotonic()
    first: int | None = None

    def report(done: int) -> None:
        nonlocal began, last, first
        now = time.monotonic()
        if first is None:  # what was already on disk says nothing about the speed
            first, began = done, now
        if now - last < _LINE_EVERY or done == first or now == began:
            return
        last = now
        speed = (done - first) / (now - began)
        left = (total - done) / speed
        print(
            f"{count(done)}, {speed:,.0f} run-iterations/s, {left / 60:.1f} minutes left",
            file=sys.stderr,
            flush=True,
        )

    return report


@contextlib.contextmanager
def _bar(title: str, total: int, count: Callable[[int], str]) -> Iterator[Report]:
    from rich import progress as rich
    from rich.console import Console

    class Count(rich.ProgressColumn):
        def render(self, task: rich.Task) -> str:
            return count(int(task.completed))

    class Speed(rich.ProgressColumn):
        def render(self, task: rich.Task) -> str:
            speed = task.finished_speed or task.speed
            return f"{speed:,.0f} it/s" if speed else "compiling…"

    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(bar_width=16),
        Count(),
        Speed(),
        rich.TimeRemainingColumn(compact=True),
        rich.TextColumn("left"),
    )
    with rich.Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.update(task, completed=done)


@contextlib.contextmanager
def item_progress(items: int, title: str, show: bool | None = None) -> Iterator[Callable[[], None]]:
    """A bar over things that are done one by one; what is given is called after each.

    Args:
        items: how many there are.
        title: what stands before the bar.
        show: True or False; by default only where a person can watch.
    """
    if not (show or (show is None and sys.stderr.isatty())):
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=items)
        yield lambda: bar.advance(task)
