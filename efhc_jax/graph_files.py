"""Graphs over time, read from a file.

NumPy files hold adjacency (time, device, device), or (device, device) for a graph that stays. Text files
have a line `time,device,device` for each link of each graph: the graph of an iteration is that of the
largest time no later than it.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from efhc_jax.errors import DataError

_MOST_BYTES = 2**31


def read_graphs(path: str | Path, devices: int, iterations: int) -> np.ndarray:
    """Adjacency (time, device, device) of the first iterations.

    Raises:
        DataError: the file is missing, is not a graph over time, or has other devices.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"graph_file={path}: no such file")
    graphs = (
        _read_numpy(path) if path.suffix in (".npy", ".npz") else _read_lines(path, devices, iterations)
    )
    if graphs.ndim == 2:
        graphs = graphs[None]
    if graphs.ndim != 3 or graphs.shape[1] != graphs.shape[2] or not len(graphs):
        raise DataError(f"graph_file={path}: has the shape {graphs.shape}; give (time, device, device)")
    if graphs.shape[1] != devices:
        raise DataError(f"graph_file={path}: has {graphs.shape[1]} devices, the experiment {devices}")
    graphs = graphs[:iterations].astype(bool)
    if (graphs != graphs.transpose(0, 2, 1)).any():
        raise DataError(f"graph_file={path}: a link goes one way only; give symmetric adjacency")
    if graphs.diagonal(axis1=1, axis2=2).any():
        raise DataError(f"graph_file={path}: a device is linked to itself; leave the diagonal empty")
    return graphs


def _read_numpy(path: Path) -> np.ndarray:
    try:
        found = np.load(path, allow_pickle=False)
        if isinstance(found, np.ndarray):
            return found
        with found as archive:
            if len(archive.files) != 1:
                raise DataError(f"graph_file={path}: holds {len(archive.files)} arrays; give one")
            return archive[archive.files[0]]
    except (OSError, EOFError, ValueError, zipfile.BadZipFile) as error:
        raise DataError(f"graph_file={path}: cannot be read ({error})") from None


def _read_lines(path: Path, devices: int, iterations: int) -> np.ndarray:
    rows = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise DataError(f"graph_file={path}: cannot be read as text") from None
    for number, line in enumerate(lines, start=1):
        words = line.split("#")[0].replace(",", " ").split()
        if not words:
            continue
        try:
            time, one, other = (int(word) for word in words)
        except ValueError:
            raise DataError(
                f"graph_file={path}, line {number}: {line!r}; give time,device,device as whole numbers"
            ) from None
        if time < 0 or not (0 <= one < devices and 0 <= other < devices):
            raise DataError(
                f"graph_file={path}, line {number}: {line!r}; "
                f"devices are 0 to {devices - 1}, times from 0"
            )
        rows.append((time, one, other))
    if not rows:
        raise DataError(f"graph_file={path}: has no links")
    last = min(max(time for time, _, _ in rows), iterations - 1)
    if (last + 1) * devices**2 > _MOST_BYTES:
        raise DataError(
            f"graph_file={path}: {last + 1:,} graphs of {devices} devices are too many to hold"
        )
    times = sorted({time for time, _, _ in rows})
    graphs = np.zeros((last + 1, devices, devices), bool)
    for time, one, other in rows:
        if time <= last:
            graphs[time, one, other] = graphs[time, other, one] = True
    for iteration in range(1, last + 1):
        if iteration not in times:
            graphs[iteration] = graphs[iteration - 1]
    return graphs
