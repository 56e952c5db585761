"""Figures of the benchmarks."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from benchmarks.report import duration
from efhc_jax.plotting.styles import LOOKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_OURS, _OTHER, _LIMIT = LOOKS["efhc"], LOOKS["gt"], LOOKS["local"]


def draw(report: dict[str, Any]) -> Figure:
    """The figure of a suite's report."""
    drawers = {
        "peers": _draw_peers,
        "scaling": _draw_scaling,
        "methods": _draw_methods,
        "startup": _draw_startup,
        "accelerators": _draw_accelerators,
    }
    return drawers[report["suite"]](report)


def _draw_peers(report: dict[str, Any]) -> Figure:
    """A panel per workload: the best time of each implementation, and the limits as lines."""
    from matplotlib.ticker import NullFormatter

    from benchmarks.suites.peers import PEERS

    names = {"ours": "ours", **PEERS}
    figure, panels = _panels(len(report["works"]), columns=2, height=2.0)
    for axes, work in zip(panels, report["works"], strict=True):
        best = {name: work["timings"][name]["best"] for name in names if name in work["timings"]}
        _bars(axes, [names[name] for name in best], list(best.values()), PEERS.values())
        limit, label = _limit_of(work)
        axes.axvline(limit, color=_LIMIT.color, ls=":", lw=2)
        what = f"{work['images']:,} images" if "images" in work else "an iteration"
        axes.set_title(work["name"], fontsize="medium")
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())  # its labels would overlap
        axes.set_xlim(left=0.5 * min(best["ours"], limit))
        axes.set_xlabel(f"seconds for {what} (dotted: {label})", fontsize="small")
    return figure


def _limit_of(work: dict[str, Any]) -> tuple[float, str]:
    """The limit of this workload: memory for the SVM's iterations, arithmetic for the others."""
    if "pass" in work["timings"] and work["model"] == "svm":
        return work["timings"]["pass"]["best"], "a pass over W and Ŵ"
    seconds = work["flops"] / max(work["product_rates"].values())
    return seconds, "the FLOP at full rate"


def _bars(axes: Axes, names: list[str], seconds: list[float], others: Collection[str] = ()) -> None:
    places = range(len(names))
    colors = [_OTHER.color if name in others else _OURS.color for name in names]
    axes.barh(list(places), seconds, color=colors)
    for place, value in zip(places, seconds, strict=True):
        axes.annotate(
            duration(value),
            (value, place),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize="small",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
        )
    axes.set_yticks(list(places), names, fontsize="small")
    axes.invert_yaxis()
    axes.margins(x=0.25)


def _draw_scaling(report: dict[str, Any]) -> Figure:
    """A panel per axis on logarithmic scales, with the limit of each line dashed in its colour."""
    from benchmarks.suites.scaling import AXES

    figure, panels = _panels(len(AXES), columns=2, height=3.6)
    for axes, (axis, title) in zip(panels, AXES.items(), strict=True):
        for model, look in (("svm", _OURS), ("lenet5", _OTHER)):
            line = [p for p in report["points"] if p["axis"] == axis and p["model"] == model]
            if not line:
                continue
            x = [point["x"] for point in line]
            name = {"svm": "SVM", "lenet5": "LeNet5"}[model]
            times = [point["timing"]["best"] for point in line]
            axes.plot(x, times, "-", color=look.color, marker=look.marker, label=name)
            limits = [point["limit"] for point in line]
            axes.plot(x, limits, "--", color=look.color, lw=1.2, label=f"{name}, limit")
        axes.set(xscale="log", yscale="log", xlabel=title)
        axes.legend(fontsize="small")
    panels[0].set_ylabel("seconds per iteration")
    panels[2].set_ylabel("seconds per iteration")
    return figure


def _draw_methods(report: dict[str, Any]) -> Figure:
    """A panel per size: the best time of each variant, and the target of each method."""
    from benchmarks.suites.methods import MOST

    height = 0.24 * max(len(work["variants"]) for work in report["works"]) + 0.9
    figure, panels = _panels(len(report["works"]), columns=2, height=height)
    for axes, work in zip(panels, report["works"], strict=True):
        best = {one["name"]: one["timing"]["best"] for one in work["variants"]}
        others = [one["name"] for one in work["variants"] if one["kind"] != "method"]
        _bars(axes, list(best), list(best.values()), others)
        for place, one in enumerate(work["variants"]):
            if one["kind"] == "method" and one["name"] != one["against"]:
                target = MOST * one["arrays"] * best[one["against"]]
                axes.vlines(target, place - 0.45, place + 0.45, color="black", ls="--")
        axes.set_title(work["name"], fontsize="medium")
        axes.ticklabel_format(axis="x", style="sci", scilimits=(0, 0))
        axes.set_xlabel("seconds for an iteration (dashed: target)", fontsize="small")
    return figure


def _draw_startup(report: dict[str, Any]) -> Figure:
    """The best time of each command, and its target."""
    figure, (axes,) = _panels(1, columns=1, height=2.2)
    starts = report["starts"]
    _bars(axes, [one["what"] for one in starts], [min(one["samples"]) for one in starts])
    for place, verdict in enumerate(report["verdicts"]):
        axes.vlines(verdict["target"], place - 0.45, place + 0.45, color="black", ls="--")
    axes.set_xlabel("seconds (dashed: target)")
    return figure


def _draw_accelerators(report: dict[str, Any]) -> Figure:
    """Launches and modelled times of each program, a bar per accelerator."""
    programs = report["programs"]
    works = list(dict.fromkeys(one["work"] for one in programs))
    targets = list(dict.fromkeys(one["target"] for one in programs))
    figure, panels = _panels(2, columns=2, height=0.42 * len(works) + 1.2)
    for axes, what, label in zip(
        panels,
        ("launches", "modelled_seconds"),
        ("operations launched per iteration or evaluation", "modelled seconds, not measured"),
        strict=True,
    ):
        for number, (target, look) in enumerate(zip(targets, (_OURS, _OTHER, _LIMIT), strict=False)):
            values = {one["work"]: one[what] for one in programs if one["target"] == target}
            places = [place + 0.27 * (number - 1) for place in range(len(works))]
            lengths = [values.get(work) or 0.0 for work in works]
            axes.barh(places, lengths, height=0.25, color=look.color, label=target)
        axes.set_yticks(range(len(works)), works if axes is panels[0] else [""] * len(works))
        axes.tick_params(axis="y", labelsize="small")
        axes.invert_yaxis()
        axes.set(xscale="log", xlabel=label)
    panels[0].legend(fontsize="small")
    return figure


def _panels(count: int, columns: int, height: float) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    rows = -(-count // columns)
    figure = Figure(figsize=(5.6 * columns, height * rows + 0.3), layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in panels:
        axes.grid(alpha=0.3)
    for axes in panels[count:]:
        axes.set_visible(False)
    return figure, panels[:count]
