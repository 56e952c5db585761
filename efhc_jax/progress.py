"""A progress bar for people; silence for everybody else."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

Report = Callable[[int], None]  # is told how many iterations have been done in all


@contextlib.contextmanager
def progress_bar(total: int, title: str, show: bool | None = None) -> Iterator[Report]:
    """A bar with iterations/s and the time left, on standard error.

    Args:
        total: how many iterations there are.
        title: what stands before the bar.
        show: True or False; by default only where a person can watch.
    """
    if show is None:
        show = sys.stderr.isatty()
    if not show:
        yield lambda done: None
        return

    from rich import progress as rich
    from rich.console import Console

    class Speed(rich.ProgressColumn):
        def render(self, task: rich.Task) -> str:
            speed = task.finished_speed or task.speed
            return f"{speed:,.0f} it/s" if speed else "compiling…"

    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        Speed(),
        rich.TextColumn("left"),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.update(task, completed=done)
