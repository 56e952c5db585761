"""Display in Jupyter notebooks: progress bars, experiments, datasets.

A progress bar updates one output in place, which every front end supports. (A bar of rich would need
ipywidgets; without them it shows only a warning.)
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import html
import io
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from efhc_jax.errors import DataError
from efhc_jax.text.docstrings import documentation

if TYPE_CHECKING:
    from efhc_jax.data import Dataset
    from efhc_jax.experiment.experiment import Experiment

_UPDATE_EVERY = 0.1  # seconds
_MOST_SAMPLES = 10
_LARGEST_SAMPLE = 64  # pixels per side


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


def experiment_html(experiment: Experiment) -> str:
    """A table of the settings that differ from their defaults, with the others folded below it."""
    fields = dataclasses.fields(experiment)
    changed = [field.name for field in fields if getattr(experiment, field.name) != field.default]
    usual = [field.name for field in fields if field.name not in changed]

    def table(names: list[str], strong: bool) -> str:
        return _table(
            _row(name, getattr(experiment, name), texts.get(name, ""), strong) for name in names
        )

    texts = documentation(experiment.__class__)
    summary = f"<summary>{len(usual)} settings at their defaults</summary>"
    folded = f"<details>{summary}{table(usual, strong=False)}</details>"
    return f"<div><strong>Experiment</strong>{table(changed, strong=True)}{folded}</div>"


def dataset_html(data: Dataset) -> str:
    """A table about a dataset, and a row of samples."""
    from efhc_jax.data.dataset import check_dataset

    title = f"<strong>Dataset {html.escape(str(data.name))}</strong>"
    try:
        check_dataset(data)
    except DataError as error:
        return f"<div>{title}<p>{html.escape(str(error))}</p></div>"
    rows = [
        _row("training samples", f"{len(data.train_images):,}"),
        _row("test samples", f"{len(data.test_images):,}"),
        _row("image shape", " × ".join(map(str, data.train_images.shape[1:]))),
        _row("classes", data.classes),
        _row("digest", data.digest),
    ]
    return f"<div>{title}{_table(rows)}{_samples(data)}</div>"


def _samples(data: Dataset) -> str:
    """The first training image of each class, in one image."""
    import numpy as np
    from PIL import Image

    _, first = np.unique(data.train_labels, return_index=True)
    step = -(-max(data.train_images.shape[1:]) // _LARGEST_SAMPLE)
    images = data.train_images[first[:_MOST_SAMPLES], ::step, ::step]
    picture = np.concatenate(list(np.pad(images, ((0, 0), (0, 0), (0, 2)))), axis=1)
    composed = io.BytesIO()
    Image.fromarray(picture).save(composed, "PNG")
    source = base64.b64encode(composed.getvalue()).decode()
    height = max(2 * picture.shape[0], 32)
    style = f"height: {height}px; image-rendering: pixelated"
    return f'<img alt="a sample of each class" style="{style}" src="data:image/png;base64,{source}"/>'


def _row(name: str, value: Any, text: str = "", strong: bool = False) -> str:
    shown = html.escape(str(list(value) if isinstance(value, tuple) else value))
    shown = f"<strong>{shown}</strong>" if strong else shown
    return f'<tr title="{html.escape(text)}"><td>{html.escape(name)}</td><td>{shown}</td></tr>'


def _table(rows: Iterable[str]) -> str:
    return f"<table><tbody>{''.join(rows)}</tbody></table>"
