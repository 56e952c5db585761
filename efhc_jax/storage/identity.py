"""Identity of a run or sweep: settings, data, files, versions, and the code of custom members.

Finished batches and checkpoints store it. A part that belongs to other work is rejected, with the
differences.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from efhc_jax.errors import DataError
from efhc_jax.experiment.experiment import Experiment
from efhc_jax.experiment.families import FAMILIES
from efhc_jax.experiment.renamed import with_new_names
from efhc_jax.storage.code_digests import member_digests

if TYPE_CHECKING:
    import xarray

_PACKAGES = ("efhc-jax", "jax", "jaxlib", "numpy", "flax", "optax")  # their versions may affect values
_MOST_FILE_BYTES = 2**31


def owner(
    experiments: Sequence[Experiment],
    digests: dict[str, str],
    *,
    audit: bool,
    bits: int,
    **more: Any,
) -> dict[str, Any]:
    """The identity of some runs, as plain JSON.

    Args:
        experiments: the runs; their settings are those of the first, but for the axes of a sweep.
        digests: digests of their datasets, by name.
        audit: whether they are recorded for an audit.
        bits: precision of their numbers in bits.
        **more: anything else that identifies them, such as the axes of a sweep.
    """
    found = {
        "experiment": json.loads(experiments[0].to_json()),
        "data": digests,
        "files": file_digests(experiments),
        "members": member_digests(experiments),
        "audit": audit,
        "bits": bits,
        "versions": {name: importlib.metadata.version(name) for name in _PACKAGES},
    }
    return json.loads(json.dumps(found | more))


def note_members(result: xarray.Dataset, experiments: Sequence[Experiment]) -> None:
    """Store the parameters of all members of some runs, and the digests of those that users registered.

    The settings of a sweep have the parameters of its first run alone.
    """
    codes = member_digests(experiments)
    noted: dict[str, dict[str, Any]] = {}
    for setting in FAMILIES:
        for one in {str(e[setting]): e for e in experiments}.values():
            name, own = str(one[setting]), one.parameters(setting)
            found: dict[str, Any] = {} if own is None else {"parameters": dataclasses.asdict(own)}
            if code := codes.get(f"{setting} {name!r}"):
                found["code"] = code
            if found:
                noted.setdefault(setting, {})[name] = found
    result.attrs["members"] = json.dumps(noted)


def file_digests(experiments: Iterable[Experiment]) -> dict[str, str]:
    """Checksums of the graph files of the experiments, by name.

    Raises:
        DataError: a file cannot be read.
    """
    names = {experiment.graph_file for experiment in experiments} - {""}
    return {name: file_digest(name) for name in sorted(names)}


def file_digest(name: str) -> str:
    """Checksum of the contents of a file."""
    path = Path(name)
    if not path.is_file():
        raise DataError(f"graph_file={name}: no such file")
    try:
        if path.stat().st_size > _MOST_FILE_BYTES:
            raise DataError(f"graph_file={name}: is too large for a file with graphs")
        return f"{zlib.crc32(path.read_bytes()):08x}"
    except OSError as error:
        raise DataError(f"graph_file={name}: cannot be read ({error.strerror})") from None


def differences(then: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """The differences between two owners, in words.

    A setting that did not exist before counts as its present default. What an earlier version of the
    package did not record is not compared.
    """
    default = {"experiment": json.loads(Experiment().to_json()), "axes": {}}
    swept = set(_mapping(then.get("axes"))) & set(_mapping(now.get("axes")))
    found = []
    for part in ("experiment", "axes"):
        old, new = (default[part] | with_new_names(_mapping(one.get(part))) for one in (then, now))
        for name in sorted(set(old) | set(new)):
            if part == "experiment" and name in swept:
                continue  # the value in the axes counts
            if old.get(name) != new.get(name):
                found.append(f"{name} is {_shown(old, name)} there and {_shown(new, name)} here")
    data = then.get("data")  # in earlier versions only a digest, or None for a named dataset
    known = list(_mapping(now.get("data")).values()) if isinstance(data, str) else [now.get("data")]
    if data is not None and data not in known:
        found.append("the data are different")
    if isinstance(then.get("files"), dict):
        for name, digest in _mapping(now.get("files")).items():
            if then["files"].get(name) != digest:
                found.append(f"the contents of {name} are different")
    old, new = _mapping(then.get("members")), _mapping(now.get("members"))
    for name in sorted(set(old) & set(new)):
        (python, _, was), (python_now, _, is_) = (str(one[name]).partition(":") for one in (old, new))
        if python == python_now and was != is_:
            found.append(f"the code of the {name} is different")
    if "bits" in then and then["bits"] != now.get("bits"):
        found.append(f"numbers have {then['bits']} bits there and {now.get('bits')} here")
    if then.get("audit", False) != now.get("audit", False):
        found.append("only one of them is recorded for an audit")
    old, new = _mapping(then.get("versions")), _mapping(now.get("versions"))
    for name in sorted(set(old) & set(new)):
        if old[name] != new[name]:
            found.append(f"{name} is {old[name]} there and {new[name]} here")
    for name in ("batch", "number"):
        if name in then and name in now and then[name] != now[name]:
            found.append(f"{_NAMES[name]} is {then[name]} there and {now[name]} here")
    return found


_NAMES = {"batch": "the size of a batch", "number": "the number of the batch"}


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _shown(part: dict[str, Any], name: str) -> str:
    return json.dumps(part[name]) if name in part else "not swept"


def note_files(result: xarray.Dataset, experiments: Iterable[Experiment]) -> None:
    """Store checksums of the graph files, if there are any."""
    digests = file_digests(experiments)
    if digests:
        result.attrs["files"] = json.dumps(digests)
