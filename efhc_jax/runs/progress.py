"""Progress bars on terminals and in notebooks, and one line per minute for logs."""

from __future__ import annotations

import contextlib
import itertools
import sys
import time
from collections.abc import Callable, Iterator

from efhc_jax.runs.notebooks import in_notebook, notebook_bar

OnProgress = Callable[[int], None]  # called with the number of iterations done so far

_LINE_EVERY = 60.0  # seconds


@contextlib.contextmanager
def run_progress(iterations: int, title: str, show: bool | None = None) -> Iterator[OnProgress]:
    """A progress bar with iterations/s and the remaining time, on standard error or in a notebook.

    Args:
        iterations: number of iterations.
        title: text before the bar.
        show: whether to show it; by default only on a terminal and in a notebook.
    """
    if _shown(show):
        with _bar(title, iterations, lambda done: f"{done:,}/{iterations:,}") as report:
            yield report
    else:
        yield lambda done: None


@contextlib.contextmanager
def sweep_progress(runs: int, iterations: int, show: bool | None = None) -> Iterator[OnProgress]:
    """The same over all runs of a sweep; one line per minute if there is no terminal or notebook.

    Args:
        runs: number of runs.
        iterations: number of iterations of each.
        show: True for a bar, False for nothing; by default a bar or lines, depending on the output.
    """

    def runs_done(done: int) -> str:
        return f"{done // iterations:,} of {runs:,} runs"

    if _shown(show):
        with _bar("sweep", runs * iterations, runs_done) as report:
            yield report
    elif show is None:
        yield _lines(runs * iterations, runs_done)
    else:
        yield lambda done: None


def _lines(total: int, count: Callable[[int], str]) -> OnProgress:
    """Print a line at intervals with progress, speed and remaining time."""
    began = last = time.monotonic()
    first: int | None = None

    def report(done: int) -> None:
        nonlocal began, last, first
        now = time.monotonic()
        if first is None:  # batches that were already on disk do not count towards the speed
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


def _shown(show: bool | None) -> bool:
    return sys.stderr.isatty() or in_notebook() if show is None else show


@contextlib.contextmanager
def _bar(title: str, total: int, count: Callable[[int], str]) -> Iterator[OnProgress]:
    if in_notebook():
        with notebook_bar(title, total, count) as report:
            yield report
        return
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
        rich.TextColumn("{task.description}", markup=False),
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
    """A progress bar over items; the function that it returns is called after each item.

    Args:
        items: number of items.
        title: text before the bar.
        show: whether to show it; by default only on a terminal and in a notebook.
    """
    if not _shown(show):
        yield lambda: None
        return
    if in_notebook():
        done = itertools.count(1)
        with notebook_bar(title, items, lambda done: f"{done:,} of {items:,}", False) as report:
            yield lambda: report(next(done))
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=items)
        yield lambda: bar.advance(task)
