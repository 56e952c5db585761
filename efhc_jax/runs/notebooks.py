"""Progress bars in Jupyter notebooks.

A bar updates one output in place, which every front end supports. (A bar of rich would need
ipywidgets; without them it shows only a warning.)
"""

from __future__ import annotations

import contextlib
import html
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

_UPDATE_EVERY = 0.1  # seconds


def in_notebook() -> bool:
    """Whether the code runs in a Jupyter kernel."""
    ipython = sys.modules.get("IPython")  # a kernel has imported it
    shell = ipython.get_ipython() if ipython else None
    return getattr(shell, "kernel", None) is not None


@contextlib.contextmanager
def notebook_bar(
    title: str, total: int, count: Callable[[int], str], speed: bool = True
) -> Iterator[Callable[[int], None]]:
    """A progress bar below the cell.

    Args:
        title: text next to the bar.
        total: number of iterations.
        count: function that describes how many are done.
        speed: whether to show iterations/s and the remaining time.
    """
    from IPython.display import display

    first: tuple[int, float] | None = None  # count and time of the first report
    shown = 0.0

    def bundle(done: int) -> dict[str, str]:
        words = " · ".join([title, count(done), *(_pace(first, done, total) if speed else [])])
        bar = f'<progress value="{done}" max="{total}"></progress>'
        return {"text/plain": words, "text/html": f"<div>{bar} {html.escape(words)}</div>"}

    output = display(bundle(0), raw=True, display_id=True)

    def report(done: int) -> None:
        nonlocal first, shown
        now = time.monotonic()
        first = first or (done, now)
        if now - shown >= _UPDATE_EVERY or done >= total:
            shown = now
            output.update(bundle(done), raw=True)

    yield report


def _pace(first: tuple[int, float] | None, done: int, total: int) -> list[str]:
    """The speed since the first report and the remaining time, in words."""
    if first is None:
        return ["compiling…"]
    elapsed = time.monotonic() - first[1]
    if done == first[0] or elapsed <= 0:
        return []
    speed = (done - first[0]) / elapsed
    return [f"{speed:,.0f} it/s", *([f"{_clock((total - done) / speed)} left"] * (done < total))]


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
