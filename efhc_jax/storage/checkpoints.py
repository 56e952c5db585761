"""Checkpoints of a batch in progress, so that a crash loses a minute of work and not a day."""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
import sys
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from efhc_jax.errors import DataError, first_line
from efhc_jax.storage.identity import differences

FORMAT = 6  # version of the layout of a checkpoint
_MOST_REASON = 200  # characters of an error of the storage layer in a message
_REASONS = [os.strerror(number) for number in (errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EACCES)]


class Checkpoints:
    """Checkpoints of nested dicts of arrays.

    Args:
        folder: the folder of the checkpoints; `clear` removes it.
        seconds: minimum time between checkpoints.
        belongs_to: the result of `ownership.owner`; a checkpoint of other work is rejected.
    """

    def __init__(
        self, folder: str | Path, seconds: float = 60.0, belongs_to: Mapping[str, Any] | None = None
    ):
        self.folder = Path(folder).absolute()
        self.seconds = seconds
        self._owner = dict(belongs_to or {})
        self._last = time.monotonic()
        self._manager: Any = None

    def due(self) -> bool:
        """Whether it is time for the next checkpoint."""
        return time.monotonic() - self._last >= self.seconds

    def save(self, position: int, tree: dict[str, Any]) -> None:
        """Save `tree`; on return it is on disk. Only the two newest checkpoints are kept.

        Raises:
            DataError: the disk is full, or cannot be written to.
        """
        import orbax.checkpoint as ocp

        owner = np.frombuffer(json.dumps(self._owner).encode(), np.uint8)
        checksum = np.int64(_checksum({"owner": owner, "tree": tree}))
        label = {"format": np.int64(FORMAT), "owner": owner, "checksum": checksum}
        labelled = {"label": label, "tree": tree}
        try:
            self._open().save(position, args=ocp.args.StandardSave(labelled))
            self._manager.wait_until_finished()
        except Exception as error:  # the errors of the storage layer are not documented
            reason = next(
                (text for text in _REASONS if text in str(error)), first_line(error)[:_MOST_REASON]
            )
            raise DataError(
                f"{self.folder}: no checkpoint could be saved ({reason}); "
                "fix this, then run the same command again to resume from the last checkpoint"
            ) from None
        self._last = time.monotonic()

    def newest(self) -> dict[str, Any] | None:
        """The newest checkpoint, or None.

        Raises:
            DataError: it cannot be read, or belongs to another run.
        """
        if not self.folder.exists():
            return None
        import jax
        import orbax.checkpoint as ocp

        try:
            manager = self._open()
            position = manager.latest_step()
            if position is None:
                return None
            found = manager.restore(position, args=ocp.args.StandardRestore())
            found = jax.tree.map(np.asarray, found)
        except Exception as error:  # the errors of the storage layer are not documented
            raise self._refusal(f"is damaged ({first_line(error)[:_MOST_REASON]})") from None
        label, tree = found.get("label", {}), found.get("tree", {})
        if label.get("format") != FORMAT:
            raise self._refusal("is from another version of efhc-jax")
        if label.get("checksum") != _checksum({"owner": label.get("owner", 0), "tree": tree}):
            raise self._refusal("is damaged (its checksum is wrong)")
        differs = differences(json.loads(label["owner"].tobytes()), self._owner)
        if differs:
            raise self._refusal(f"belongs to other work ({'; '.join(differs)})")
        return tree

    def _refusal(self, what: str) -> DataError:
        return DataError(
            f"{self.folder}: the checkpoint {what}; remove this folder to start this part again"
        )

    def clear(self) -> None:
        """Remove the checkpoints."""
        if self._manager is not None:
            self._manager.close()
            self._manager = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def _open(self) -> Any:
        if self._manager is None:
            import orbax.checkpoint as ocp

            _hush()
            logging.getLogger("absl").setLevel(logging.CRITICAL)  # errors are also raised
            options = ocp.CheckpointManagerOptions(
                max_to_keep=2, create=True, cleanup_tmp_directories=True
            )
            self._manager = ocp.CheckpointManager(self.folder, options=options)
        return self._manager


def leaves_by_path(tree: Any) -> dict[str, Any]:
    """The arrays of any tree by their paths, as a checkpoint stores them."""
    import jax

    return {_name(path): leaf for path, leaf in jax.tree.leaves_with_path(tree)}


def from_leaves(like: Any, leaves: dict[str, Any]) -> Any:
    """The tree with the structure of `like` and the arrays that `leaves_by_path` gave.

    Raises:
        DataError: the structure is another one, as after a change of a policy's memory.
    """
    import jax

    paths = [_name(path) for path, _ in jax.tree.leaves_with_path(like)]
    if set(paths) != set(leaves):
        other = ", ".join(sorted(set(paths) ^ set(leaves))[:3])
        raise DataError(f"the checkpoint has another state ({other}); remove its folder to start again")
    return jax.tree.unflatten(jax.tree.structure(like), [leaves[path] for path in paths])


def _name(path: Any) -> str:
    """A path in a tree as one word, because names of stored arrays are joined with dots."""
    import jax

    return jax.tree_util.keystr(path, simple=True, separator="-")


def _hush() -> None:
    """Silence threads of the storage layer that finish after their operation has failed."""
    before = sys.unraisablehook

    def hook(late: Any) -> None:
        if "Event loop is closed" not in str(late.exc_value):
            before(late)

    hook.__qualname__ = _hush.__name__
    if getattr(before, "__qualname__", "") != _hush.__name__:
        sys.unraisablehook = hook


def _checksum(tree: dict[str, Any]) -> int:
    """Checksum of all arrays and their names, independent of the order of insertion."""
    import jax

    checksum = 0
    for path, leaf in jax.tree.leaves_with_path(tree):
        array = np.ascontiguousarray(leaf)
        text = f"{jax.tree_util.keystr(path)} {array.dtype} {np.shape(leaf)}"
        checksum = zlib.crc32(array.tobytes(), zlib.crc32(text.encode(), checksum))
    return checksum
