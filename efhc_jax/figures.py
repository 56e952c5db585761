"""Pictures of results. Each policy has one colour and one marker, everywhere."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from efhc_jax.files import written_whole

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Look(NamedTuple):
    """How a policy is drawn: told apart by colour, by marker, and in grey."""

    label: str
    color: str
    marker: str
    dashes: str


LOOKS = {
    "efhc": Look("EF-HC", "#0072B2", "o", "-"),
    "gt": Look("GT", "#E69F00", "s", "--"),
    "zt": Look("ZT", "#009E73", "^", "-."),
    "rg": Look("RG", "#CC79A7", "D", ":"),
    "local": Look("local", "#7F7F7F", "v", ":"),
    "central": Look("central", "#000000", "*", "--"),
}


def look_of(policy: str) -> Look:
    """How a policy is drawn; one of a user's own is drawn in black."""
    return LOOKS.get(policy, Look(policy, "#000000", "x", "-"))


def draw_runs(runs: Sequence[xarray.Dataset]) -> Figure:
    """Accuracy against iterations and against transmission time, one line a run."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    by_iteration, by_time = figure.subplots(1, 2, sharey=True)
    for run in runs:
        experiment = json.loads(run.attrs["experiment"])
        look = look_of(experiment["policy"])
        accuracy = 100 * run.accuracy
        _line(by_iteration, run.iteration.values, accuracy, look)
        _line(by_time, time_at_evaluations(run), accuracy, look)
    by_iteration.set(xlabel="iteration", ylabel="test accuracy, mean over devices (%)")
    by_time.set(xlabel="cumulative transmission time")
    for axes in (by_iteration, by_time):
        axes.grid(alpha=0.3)
        axes.set_xlim(left=0)
    by_iteration.legend(title="line: mean; shade: worst to best device", title_fontsize="small")
    experiment = json.loads(runs[0].attrs["experiment"])
    figure.suptitle(
        f"{experiment['model']} on {experiment['dataset']}, {experiment['devices']} devices, "
        f"r = {experiment['r']:g}, H = {experiment['heterogeneity']:g}"
    )
    return figure


def time_at_evaluations(run: xarray.Dataset) -> np.ndarray:
    """Cumulative transmission time at each evaluation, summed in 64 bits."""
    total = np.concatenate([[0.0], np.cumsum(run.transmission_time.values, dtype=np.float64)])
    return total[run.iteration.values]


def save_figure(figure: Figure, path: Path) -> Path:
    """Store a figure in the format of its ending, in full or not at all."""
    with written_whole(path) as part:
        figure.savefig(part, dpi=150)
    return path


def _line(axes: Axes, x: np.ndarray, accuracy: xarray.DataArray, look: Look) -> None:
    every = max(1, len(x) // 10)
    axes.plot(
        x,
        accuracy.mean("device"),
        look.dashes,
        color=look.color,
        marker=look.marker,
        markevery=every,
        label=look.label,
    )
    axes.fill_between(
        x, accuracy.min("device"), accuracy.max("device"), color=look.color, alpha=0.12, lw=0
    )
