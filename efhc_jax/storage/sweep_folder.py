"""The folder of a sweep: its settings and its finished batches.

sweep.json      settings and axes, to reject another sweep in the same folder
batches/*.npz   finished batches, during the sweep
checkpoint/     the batch in progress
sweep.nc        the result, at the end
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from efhc_jax.disk.files import output_folder, written_whole
from efhc_jax.disk.locks import held
from efhc_jax.errors import DataError, ExperimentError
from efhc_jax.results.history import Record
from efhc_jax.storage.identity import differences

FORMAT = 1
_OWNER = "owner"  # key of the identity of a batch


class Store:
    """The folder of one sweep."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.result = self.folder / "sweep.nc"
        self.checkpoint = self.folder / "checkpoint"
        self._owner: dict[str, Any] = {}
        self._batches = self.folder / "batches"
        self._manifest = self.folder / "sweep.json"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for this process.

        If the work fails before anything is saved, the folder is left as it was.
        """
        with output_folder(self.folder), held(self.folder):
            try:
                yield
            except BaseException:
                if not (self._batches.exists() or self.checkpoint.exists() or self.result.exists()):
                    self._manifest.unlink(missing_ok=True)
                raise

    def claim(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Start or resume a sweep.

        Returns:
            The manifest of the folder: `manifest`, or when resuming the stored one, whose batch size
            applies.

        Raises:
            ExperimentError: the folder contains another sweep.
        """
        manifest = {"format": FORMAT} | manifest
        if not self._manifest.exists():
            if self.folder.exists() and self.result.exists():
                raise ExperimentError(f"out={self.folder}: contains a result without its sweep.json")
            with written_whole(self._manifest) as part:
                part.write_text(json.dumps(manifest, indent=1), encoding="utf-8")
            self._owner = manifest
            return manifest
        try:
            begun = json.loads(self._manifest.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(f"{self._manifest}: cannot be read ({error})") from None
        self._check_manifest(begun)
        found = differences({name: value for name, value in begun.items() if name != "batch"}, manifest)
        if found:
            raise ExperimentError(
                f"out={self.folder}: contains another sweep ({'; '.join(found)}); "
                "give another folder, or the same settings to resume it"
            )
        self._owner = manifest | {"batch": begun["batch"]}
        return begun

    def _check_manifest(self, begun: Any) -> None:
        """Raise unless the manifest has all entries with the right types."""
        newest = begun.get("format") if isinstance(begun, dict) else None
        if isinstance(newest, int) and newest > FORMAT:
            raise DataError(f"{self._manifest}: is from a newer version of efhc-jax; upgrade")
        kinds = {"format": int, "batch": int, "experiment": dict, "axes": dict}
        for name, kind in kinds.items():
            value = begun.get(name) if isinstance(begun, dict) else None
            if not isinstance(value, kind) or isinstance(value, bool):
                raise DataError(
                    f"{self._manifest}: is damaged (its {name} cannot be read); give another folder, "
                    "or remove this one to start again"
                )
        if begun["batch"] < 1:
            raise DataError(f"{self._manifest}: is damaged (batch={begun['batch']})")

    def owner_of(self, batch: int) -> dict[str, Any]:
        """The identity of a batch and its checkpoint."""
        return self._owner | {"number": batch}

    def finished(self, batch: int) -> bool:
        """Whether a batch is on disk."""
        return self._path(batch).exists()

    def save(self, batch: int, records: list[Record]) -> None:
        """Write a finished batch; on return it is on disk."""
        text = json.dumps(self.owner_of(batch)).encode()
        arrays: dict[str, np.ndarray] = {"runs": np.array(len(records))}
        arrays[_OWNER] = np.frombuffer(text, np.uint8)
        for run, record in enumerate(records):
            for field, value in record._asdict().items():
                if isinstance(value, dict):
                    for name, array in value.items():
                        arrays[f"{run}/{field}/{name}"] = array
                elif value is not None:
                    arrays[f"{run}/{field}"] = np.asarray(value)
        with written_whole(self._path(batch)) as part, part.open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]

    def load(self, batch: int) -> list[Record]:
        """A finished batch.

        Raises:
            DataError: it cannot be read, or belongs to another sweep.
        """
        path = self._path(batch)
        try:
            with np.load(path, allow_pickle=False) as archive:
                arrays = dict(archive)
            belongs_to = json.loads(arrays.pop(_OWNER, _NOBODY).tobytes())
            found = (
                differences(belongs_to, self.owner_of(batch))
                if belongs_to
                else ["its sweep is not recorded"]
            )
            if self._owner and found:
                raise _ForeignError("; ".join(found))
            return [_record(arrays, run) for run in range(int(arrays["runs"]))]
        except _ForeignError as error:
            raise DataError(
                f"{path}: is a batch of another sweep ({error}); remove this file to compute it again, "
                "or give another folder"
            ) from None
        except Exception as error:  # NumPy's errors on damaged files are not documented
            raise DataError(
                f"{path}: a finished batch cannot be read ({error}); "
                "remove this file to compute it again"
            ) from None

    def tidy(self) -> None:
        """Remove the batches once the result is on disk."""
        shutil.rmtree(self._batches, ignore_errors=True)
        shutil.rmtree(self.checkpoint, ignore_errors=True)

    def _path(self, batch: int) -> Path:
        return self._batches / f"{batch:05d}.npz"


def _record(arrays: dict[str, np.ndarray], run: int) -> Record:
    fields: dict[str, Any] = {"evaluations": {}, "steps": {}, "budgets": {}}
    for key, array in arrays.items():
        owner, _, rest = key.partition("/")
        if owner != str(run):
            continue
        field, _, name = rest.partition("/")
        if name:
            fields[field][name] = array
        else:
            fields[field] = array
    fields["diverged_at"] = int(fields["diverged_at"])
    fields["diverged"] = tuple(int(device) for device in fields["diverged"])
    for name in ("seconds", "evaluation_seconds"):
        fields[name] = float(fields[name])
    return Record(**fields)


class _ForeignError(Exception):
    """A batch belongs to another sweep."""


_NOBODY = np.frombuffer(b"{}", np.uint8)
