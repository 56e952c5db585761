"""One run as plain values: broadcasts, links in use, the audit."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from efhc_jax.errors import EfhcError
from efhc_jax.experiment.experiment import Experiment
from efhc_jax.plotting.positions import first_graph, places_of
from efhc_jax.report.auditor import Auditor
from efhc_jax.report.packing import numbers, packed_bits, packed_shares, some_of, stretches
from efhc_jax.report.thinning import Limits, Part, drawn_part
from efhc_jax.results.activity import Activity, activity_of, weak_devices

if TYPE_CHECKING:
    import xarray

_BITS = 6  # bits per character of base64
_FINDINGS = 2_500  # characters per audit
_NETWORK = ("devices", "graph", "connectivity", "placement", "dynamics", "seed")
_COUNTS = 14  # characters of the counts in a frame of a network that is drawn in part
_EDGE = 7  # characters of the iteration at which a frame begins, if it is written


class Detail(NamedTuple):
    """Values that the runs of a study share in the page."""

    places: list[Any]  # distinct positions of devices; filled while runs are added
    evaluations: np.ndarray  # indices of the evaluations that are shown
    auditor: Auditor
    limits: Limits  # of the networks that are drawn
    found: dict[
        tuple[Any, ...], np.ndarray
    ]  # positions by network settings; filled while runs are added


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
        places = 32 * devices
        fixed = len(json.dumps(values)) + _FINDINGS + (0 if values["moves"] else places / _BITS)
        moving = (places if values["moves"] else 0) + (_COUNTS * _BITS if values["whole"] else 0)
        exact, thin = devices + links + moving, 16 * devices + links + moving
        if values["use"] is None:  # a frame covers the iterations between two evaluations
            exact = thin = 16 * devices + _EDGE * _BITS + moving
        return cls(fixed, exact / _BITS, thin / _BITS)

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
        audited: whether to audit the run, if it was recorded with `--audit`.
    """
    experiment = Experiment.from_json(run.attrs["experiment"])
    activity = activity_of(run)
    steps, devices = run.sizes["step"], run.sizes["device"]
    evaluations = detail.evaluations[detail.evaluations < run.sizes["evaluation"]]
    links = _links_at_first(experiment) if activity is None else activity.links
    part = drawn_part(np.zeros((0, 2), int) if links is None else links, devices, detail.limits)
    if activity is None:
        values, edges = _without_activity(run, part, frames)
    else:
        edges = stretches(steps, frames)
        values = _with_activity(activity, edges, part)
    if len(part.devices) == devices and (links is None or len(part.links) == len(links)):
        values["whole"] = None
    else:
        values["whole"] |= {"devices": devices, "links": None if links is None else len(links)}
    places = None
    if links is not None:
        places = _places(experiment, part, 1 if activity is None else steps, detail.found)
    moves = places is not None and places.ndim == 3
    if places is not None and moves:
        places = places[np.minimum(edges[:-1], len(places) - 1)]
    return values | {
        "edges": {"length": int(edges[1] - edges[0]), "steps": steps}
        if activity and steps
        else edges.tolist(),
        "ids": None if len(part.devices) == devices else part.devices.tolist(),
        "links": part.links.tolist(),
        "accuracy": packed_shares(run.accuracy.values[evaluations][:, part.devices]),
        "weak": weak_devices(run)[part.devices].tolist(),
        "bandwidth": numbers(run.bandwidth.values[part.devices]),
        "places": _entered(detail.places, places),
        "moves": moves,
        "audit": detail.auditor.findings(run) if activity and audited else None,
        "diverged_at": int(run.diverged_at) if "diverged_at" in run else -1,
    }


def _with_activity(activity: Activity, edges: np.ndarray, part: Part) -> dict[str, Any]:
    """Broadcasts and links of every group of iterations between two edges, with their totals."""
    steps = max(1, len(activity.fired))
    exact = bool((np.diff(edges) == 1).all())
    shares = _share(activity.fired[:, part.devices], edges)
    up, used = activity.up[:, part.chosen], activity.used[:, part.chosen]
    return {
        "fired": packed_bits(shares) if exact else packed_shares(shares),
        "exact": exact,
        "used": packed_bits(_share(used, edges)),
        "up": None if up.all() else packed_bits(_share(up, edges)),
        "use": numbers(used.sum(0) / steps),
        "whole": {
            "fired": _counts(activity.fired, edges),
            "used": _counts(activity.used, edges),
        },
    }


def _without_activity(run: xarray.Dataset, part: Part, frames: int) -> tuple[dict[str, Any], np.ndarray]:
    """Broadcasts between evaluations in at most `frames` frames, and the edges of the frames."""
    marks = some_of(run.sizes["evaluation"], frames + 1)
    edges = run.iteration.values[marks]
    shares = np.diff(run.broadcasts.values[marks], axis=0) / np.maximum(np.diff(edges)[:, None], 1)
    if len(marks) < 2:
        edges = np.array([0, max(run.sizes["step"], 1)])
        shares = np.zeros((1, run.sizes["device"]))
    values = {
        "fired": packed_shares(shares[:, part.devices]),
        "exact": False,
        "used": None,
        "up": None,
        "use": None,
        "whole": {"fired": (shares > 0).sum(1).tolist(), "used": None},
    }
    return values, edges


def _links_at_first(experiment: Experiment) -> np.ndarray | None:
    """The links of the first graph, computed from the settings; None if they are not sufficient.

    A file that is named in a result is never opened, because results may come from untrusted sources.
    """
    if experiment.graph_file:
        return None
    with contextlib.suppress(EfhcError):  # such as a graph that is not registered here
        return np.argwhere(np.triu(first_graph(experiment)))
    return None


def _counts(happened: np.ndarray, edges: np.ndarray) -> list[int]:
    """The number of columns of (step, …) with at least one True in each group of iterations."""
    ever = np.logical_or.reduceat(happened, edges[:-1], axis=0) if len(edges) > 1 else happened[:0]
    return [int(count) for count in ever.sum(1)]


def _share(happened: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The fraction of True values in each group of iterations: (group, …) from (step, …)."""
    if len(edges) < 2:
        return np.zeros((0, happened.shape[1]))
    sums = np.add.reduceat(happened.astype(np.int32), edges[:-1], axis=0)
    return np.asarray(sums / np.diff(edges)[:, None])


def _places(
    experiment: Experiment, part: Part, steps: int, found: dict[tuple[Any, ...], np.ndarray]
) -> np.ndarray:
    """Positions of the devices that are drawn."""
    count = len(part.devices)
    adjacency = np.zeros((count, count), bool)
    one, other = part.links.T
    adjacency[one, other] = adjacency[other, one] = True
    moving = experiment.parameters("dynamics")
    key = (adjacency.tobytes(), steps, moving, *(experiment[name] for name in _NETWORK))
    if key not in found:
        found[key] = places_of(experiment, adjacency, steps)
    places = found[key]
    laid_out = places.shape[-2] == count  # otherwise they are the positions of all devices
    return places if laid_out else places[..., part.devices, :]


def _entered(shared: list[Any], places: np.ndarray | None) -> int | None:
    """The index of these positions in the shared list, to which new ones are appended."""
    if places is None:
        return None
    packed = packed_shares(places)
    if packed not in shared:
        shared.append(packed)
    return shared.index(packed)
