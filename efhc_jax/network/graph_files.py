"""Graphs read from a file: a single one, or several over time.

NumPy files contain adjacency (device, device), or (time, device, device) with one graph per iteration.
Text files have a line per link: `device,device` for a single graph, and `time,device,device` for graphs
over time; iteration k uses the graph with the largest time that is at most k.
"""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from efhc_jax.errors import DataError, first_line

_MOST_BYTES = 2**30  # of an array, or of a text


class GraphsOverTime(NamedTuple):
    """Graphs over time; each is in use until the next one begins."""

    times: np.ndarray  # int (graph,), from 0 and increasing
    links: list[np.ndarray]  # of each graph: int (link, 2), smaller device first, in order

    def all_links(self) -> np.ndarray:
        """Every link of any graph, once."""
        return np.unique(np.concatenate(self.links), axis=0).reshape(-1, 2)


def read_graphs(path: str | Path, devices: int, iterations: int | None = None) -> GraphsOverTime:
    """The graphs of a file that are in use in the first iterations.

    Raises:
        DataError: the file is missing, is not a graph file, or has other devices.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"graph_file={path}: no such file")
    if path.stat().st_size > _MOST_BYTES:
        raise DataError(f"graph_file={path}: is too large for a file with graphs")
    is_numpy = path.suffix in (".npy", ".npz")
    graphs = _from_adjacency(path, devices) if is_numpy else _from_lines(path, devices)
    seen = len(graphs.times) if iterations is None else int((graphs.times < iterations).sum())
    return GraphsOverTime(graphs.times[:seen], graphs.links[:seen])


def _from_adjacency(path: Path, devices: int) -> GraphsOverTime:
    graphs = _load(path)
    if graphs.ndim == 2:
        graphs = graphs[None]
    if graphs.ndim != 3 or graphs.shape[1] != graphs.shape[2] or not len(graphs):
        raise DataError(
            f"graph_file={path}: has shape {graphs.shape}; "
            "give (device, device) or (time, device, device)"
        )
    if graphs.shape[1] != devices:
        raise DataError(f"graph_file={path}: has {graphs.shape[1]} devices, the experiment {devices}")
    graphs = graphs.astype(bool)
    if (graphs != graphs.transpose(0, 2, 1)).any():
        raise DataError(f"graph_file={path}: a link goes one way only; give symmetric adjacency")
    if graphs.diagonal(axis1=1, axis2=2).any():
        raise DataError(f"graph_file={path}: a device is linked to itself; leave the diagonal empty")
    changed = (graphs[1:] != graphs[:-1]).any((1, 2))
    times = np.flatnonzero(np.concatenate([[True], changed]))
    return GraphsOverTime(times, [np.argwhere(np.triu(graphs[time])) for time in times])


def _load(path: Path) -> np.ndarray:
    try:
        if not zipfile.is_zipfile(path):
            with path.open("rb") as file:
                _check_header(path, file)
            return np.load(path, allow_pickle=False)
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if len(names) != 1:
                raise DataError(f"graph_file={path}: holds {len(names)} arrays; give one")
            with archive.open(names[0]) as file:
                _check_header(path, file)
        with np.load(path, allow_pickle=False) as found:
            return found[found.files[0]]
    except DataError:
        raise
    except Exception as error:  # NumPy's errors on damaged files are not documented
        raise DataError(f"graph_file={path}: cannot be read ({first_line(error)})") from None


def _check_header(path: Path, file: Any) -> None:
    """Raise if an array is too large, before it is read."""
    version = np.lib.format.read_magic(file)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, _, kind = read.get(version, np.lib.format.read_array_header_2_0)(file)
    size = math.prod(shape) * max(1, kind.itemsize)
    if size > _MOST_BYTES:
        raise DataError(
            f"graph_file={path}: an array {shape} takes {size / 1e9:.1f} GB; give the links as lines of "
            "time,device,device"
        )


def _from_lines(path: Path, devices: int) -> GraphsOverTime:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise DataError(f"graph_file={path}: cannot be read as text") from None
    rows = []
    for number, line in enumerate(lines, start=1):
        words = line.split("#")[0].replace(",", " ").split()
        if words:
            rows.append(_row(words, devices, f"graph_file={path}, line {number}: {line!r}; "))
    if not rows:
        raise DataError(f"graph_file={path}: has no links")
    if len({len(row) for row in rows}) > 1:
        raise DataError(f"graph_file={path}: some lines have a time and some have none")
    table = np.array([(0, *row)[-3:] for row in rows])
    table[:, 1:].sort(axis=1)
    times = np.unique(table[:, 0])
    links = [np.unique(table[table[:, 0] == time, 1:], axis=0) for time in times]
    if times[0] > 0:  # no links before
        times, links = np.concatenate([[0], times]), [np.zeros((0, 2), int), *links]
    return GraphsOverTime(times, links)


def _row(words: list[str], devices: int, place: str) -> tuple[int, ...]:
    """The numbers of a line."""
    try:
        row = tuple(int(word) for word in words)
    except ValueError:
        row = ()
    if len(row) not in (2, 3):
        raise DataError(place + "give device,device or time,device,device as whole numbers")
    time, one, other = (0, *row)[-3:]
    if not (0 <= time < 2**31 - 1 and 0 <= one < devices and 0 <= other < devices):
        raise DataError(place + f"devices are 0 to {devices - 1}, times from 0")
    if one == other:
        raise DataError(place + "a device is linked to itself")
    return row
