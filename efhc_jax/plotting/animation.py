"""Animation of a run: devices coloured by accuracy, links highlighted when they are used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from efhc_jax.disk.files import written_whole
from efhc_jax.errors import ExperimentError
from efhc_jax.experiment.experiment import Experiment
from efhc_jax.network.slots import to_matrix
from efhc_jax.plotting.figures import describe
from efhc_jax.plotting.positions import places_of
from efhc_jax.plotting.styles import look_of_run
from efhc_jax.results.activity import Activity, activity_of, weak_devices
from efhc_jax.runs.progress import item_progress
from efhc_jax.text.printing import in_figure

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

_SECONDS = 0.1  # duration of a frame
_PAUSE = 2.0  # duration of the last frame
_COLORS = 64  # size of the palette of the GIF
_IN_USE, _LINK, _SIGN = "#D55E00", "#B8BDC4", "#6B7280"


def animate(
    run: xarray.Dataset, out: str | Path, frames: int = 120, progress: bool | None = None
) -> Path:
    """Write a GIF of the network of a run.

    Each frame is one iteration, and frames are spread evenly over the run. Links that carry parameters
    are highlighted, and devices that broadcast have a ring.

    Args:
        run: the result of `simulate(…, audit=True)` or `efhc run --audit`.
        out: the GIF to write.
        frames: number of frames; at most one per iteration.
        progress: show a progress bar; by default on a terminal and in a notebook.

    Raises:
        ExperimentError: the run was not recorded for an audit, or `out` does not end in .gif.
    """
    from PIL import Image

    out = Path(out)
    if out.suffix.lower() != ".gif":
        raise ExperimentError(f"out={out}: give a file ending in .gif")
    if frames < 1:
        raise ExperimentError(f"frames={frames}: give a whole number of 1 or more")
    activity = activity_of(run)
    if activity is None or not len(activity.fired):
        raise ExperimentError(
            "animate: the run did not record its graphs and broadcasts; run it again with audit=True, "
            "or efhc run --audit"
        )
    iterations = np.unique(np.linspace(0, len(activity.fired) - 1, frames).round().astype(int))
    pictures: list[Any] = []
    scene = _Scene(run, activity)
    with item_progress(len(iterations), "animate", progress) as tick:
        for iteration in iterations.tolist():
            picture = Image.fromarray(scene.at(iteration))
            pictures.append(picture.quantize(_COLORS, dither=Image.Dither.NONE))
            tick()
    durations = [int(1000 * _SECONDS)] * len(pictures)
    durations[-1] = int(1000 * _PAUSE)
    with written_whole(out) as part:
        pictures[0].save(
            part,
            format="GIF",
            save_all=True,
            append_images=pictures[1:],
            duration=durations,
            loop=0,
            optimize=True,
        )
    return out


class _Scene:
    """A frame, drawn once; `at` updates it for an iteration."""

    def __init__(self, run: xarray.Dataset, activity: Activity):
        from matplotlib.collections import LineCollection

        self._run, self._activity = run, activity
        experiment = Experiment.from_json(run.attrs["experiment"])
        devices, steps = run.sizes["device"], run.sizes["step"]
        places = places_of(experiment, to_matrix(activity.links, devices), steps)
        self._places = places if places.ndim == 3 else places[None]
        self._accuracy = 100 * run.accuracy.values  # (evaluation, device)
        self._figure, axes, beside = _canvas()
        look = look_of_run(experiment)
        axes.set_title(in_figure(f"{look.label}: {describe(experiment)}"), fontsize="medium")
        self._physical = LineCollection([], colors=_LINK, linewidths=1.2, zorder=1)
        self._used = LineCollection([], colors=_IN_USE, linewidths=2.6, zorder=2)
        axes.add_collection(self._physical)
        axes.add_collection(self._used)
        low, high = float(np.nanmin(self._accuracy)), float(np.nanmax(self._accuracy))
        weak = weak_devices(run)
        self._groups = []
        for members, marker, label in ((~weak, "o", "device"), (weak, "s", "weak device")):
            dots = axes.scatter(
                *self._places[0, members].T,
                c=self._accuracy[0, members],
                s=190,
                marker=marker,
                cmap="viridis",
                vmin=low,
                vmax=high,
                linewidths=3,
                zorder=3,
            )
            self._groups.append((members, dots))
            axes.scatter([], [], c=_SIGN, s=120, marker=marker, label=label)
        axes.plot([], [], color=_IN_USE, lw=2.6, label="in use; ring: broadcasts")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.01), ncols=3, frameon=False)
        self._figure.colorbar(self._groups[0][1], cax=beside, label="accuracy (%)")
        self._text = axes.text(0.5, 1.0, "", transform=axes.transAxes, ha="center", va="top")
        low, high = self._places.min((0, 1)), self._places.max((0, 1))
        middle, reach = (low + high) / 2, 0.57 * max(*(high - low), 0.1)
        axes.set_xlim(middle[0] - reach, middle[0] + reach)
        axes.set_ylim(middle[1] - reach, middle[1] + 1.1 * reach)

    def at(self, iteration: int) -> np.ndarray:
        """The pixels (height, width, 3) of an iteration."""
        activity, run = self._activity, self._run
        places = self._places[min(iteration, len(self._places) - 1)]
        ends = places[activity.links]
        self._physical.set_segments(ends[activity.up[iteration]])
        self._used.set_segments(ends[activity.used[iteration]])
        times = run.iteration.values
        evaluation = int(np.searchsorted(times, iteration + 1, side="right")) - 1  # after this iteration
        accuracy, fired = self._accuracy[evaluation], activity.fired[iteration]
        for members, dots in self._groups:
            dots.set_offsets(places[members])
            dots.set_array(accuracy[members])
            dots.set_edgecolors([_IN_USE if one else "white" for one in fired[members]])
        here = f"iteration {iteration + 1:,} of {len(activity.fired):,}"
        evaluated = (
            "" if times[evaluation] == iteration + 1 else f" after iteration {times[evaluation]:,}"
        )
        self._text.set_text(f"{here}; mean accuracy{evaluated}: {np.nanmean(accuracy):.1f} %")
        return _pixels(self._figure)


def _canvas() -> tuple[Figure, Any, Any]:
    """A figure with a square for the network and a strip for the colour bar."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 6.6), dpi=90)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.03, 0.09, 0.82, 0.82))
    beside = figure.add_axes((0.88, 0.12, 0.025, 0.74))
    axes.set(aspect="equal")
    axes.axis("off")
    return figure, axes, beside


def _pixels(figure: Figure) -> np.ndarray:
    canvas: Any = figure.canvas
    canvas.draw()
    return np.ascontiguousarray(np.asarray(canvas.buffer_rgba())[..., :3])
