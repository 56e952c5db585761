"""One run as plain values: broadcasts, links in use, the audit."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from efhc_jax.activity import Activity, activity_of, weak_devices
from efhc_jax.config import Experiment
from efhc_jax.errors import EfhcError
from efhc_jax.places import first_graph, places_of
from efhc_jax.report.auditor import Auditor
from efhc_jax.report.packing import numbers, packed_bits, packed_shares, stretches

if TYPE_CHECKING:
    import xarray

_BITS = 6  # bits per character of base64
_FINDINGS = 2_500  # characters per audit


class Detail(NamedTuple):
    """Values that the runs of a study share in the page."""

    places: list[Any]  # distinct positions of devices; filled while runs are added
    evaluations: np.ndarray  # indices of the evaluations that are shown
    auditor: Auditor


class Room(NamedTuple):
    """Number of characters of a run in the page."""

    fixed: float
    exact: float  # per frame of its network, if a frame is an iteration
    thin: float  # per frame, if a frame is a group of iterations

    @classmethod
    def of(cls, values: dict[str, Any]) -> Room:
        """Estimate from a run that was written with a single frame."""
        devices = len(values["weak"])
        links = len(values["links"]) * (1 if values["up"] is None else 2)
        moving = 32 * devices if values["moves"] else 0
        fixed = len(json.dumps(values)) + _FINDINGS
        return cls(fixed, (devices + links + moving) / _BITS, (16 * devices + links + moving) / _BITS)

    def frames(self, room: float, steps: int) -> int:
        """The number of frames that fit: one per iteration, or groups of iterations."""
        left = room - self.fixed
        return steps if self.exact * steps <= left else max(1, int(left // self.thin))


def run_values(run: xarray.Dataset, detail: Detail, frames: int, audited: bool) -> dict[str, Any]:
    """The values of one run in the page, without its curves.

    Args:
        run: a single run.
        detail: values that it shares with other runs.
        frames: largest number of frames of the network; iterations of longer runs are grouped.
        audited: whether to audit it, if it was recorded for that.
    """
    experiment = Experiment.from_json(run.attrs["experiment"])
    activity = activity_of(run)
    steps = run.sizes["step"]
    evaluations = detail.evaluations[detail.evaluations < run.sizes["evaluation"]]
    if activity is None:
        edges = run.iteration.values if run.sizes["evaluation"] > 1 else np.array([0, max(steps, 1)])
        values = _without_activity(run, experiment)
    else:
        edges = stretches(steps, frames)
        values = _with_activity(activity, edges)
    places = _places(experiment, run, activity, values["links"])
    moves = places is not None and places.ndim == 3
    if places is not None and moves:
        places = places[np.minimum(edges[:-1], len(places) - 1)]
    return values | {
        "edges": {"length": int(edges[1] - edges[0]), "steps": steps}
        if activity and steps
        else edges.tolist(),
        "accuracy": packed_shares(run.accuracy.values[evaluations]),
        "weak": weak_devices(run).tolist(),
        "bandwidth": numbers(run.bandwidth.values),
        "places": _entered(detail.places, places),
        "moves": moves,
        "audit": detail.auditor.findings(run) if activity and audited else None,
        "diverged_at": int(run.diverged_at) if "diverged_at" in run else -1,
    }


def _with_activity(activity: Activity, edges: np.ndarray) -> dict[str, Any]:
    """Broadcasts and links of every group of iterations between two edges."""
    steps = max(1, len(activity.fired))
    exact = bool((np.diff(edges) == 1).all())
    shares = _share(activity.fired, edges)
    always = bool(activity.up.all())
    return {
        "links": activity.links.tolist(),
        "fired": packed_bits(shares) if exact else packed_shares(shares),
        "exact": exact,
        "used": packed_bits(_share(activity.used, edges)),
        "up": None if always else packed_bits(_share(activity.up, edges)),
        "use": numbers(activity.used.sum(0) / steps),
    }


def _without_activity(run: xarray.Dataset, experiment: Experiment) -> dict[str, Any]:
    """The values of a run without an audit: its first network, and broadcasts between evaluations."""
    links: list[list[int]] = []
    with contextlib.suppress(EfhcError):  # the graph file may be missing
        links = np.argwhere(np.triu(first_graph(experiment))).tolist()
    lengths = np.diff(run.iteration.values)[:, None]
    shares = np.diff(run.broadcasts.values, axis=0) / np.maximum(lengths, 1)
    if not len(shares):
        shares = np.zeros((1, run.sizes["device"]))
    return {
        "links": links,
        "fired": packed_shares(shares),
        "exact": False,
        "used": None,
        "up": None,
        "use": None,
    }


def _share(happened: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The fraction of iterations in which it happened, per group: (group, …) from (step, …)."""
    if len(edges) < 2:
        return np.zeros((0, happened.shape[1]))
    sums = np.add.reduceat(happened.astype(np.int32), edges[:-1], axis=0)
    return np.asarray(sums / np.diff(edges)[:, None])


def _places(
    experiment: Experiment, run: xarray.Dataset, activity: Activity | None, links: list[list[int]]
) -> np.ndarray | None:
    """The positions of the devices, if they are known."""
    if activity is None and not links and experiment.graph_file:
        return None
    devices = run.sizes["device"]
    adjacency = np.zeros((devices, devices), bool)
    for one, other in links:
        adjacency[one, other] = adjacency[other, one] = True
    steps = 1 if activity is None else run.sizes["step"]
    return places_of(experiment, adjacency, steps)


def _entered(shared: list[Any], places: np.ndarray | None) -> int | None:
    """The index of these positions among those that runs share."""
    if places is None:
        return None
    packed = packed_shares(places)
    if packed not in shared:
        shared.append(packed)
    return shared.index(packed)
