"""A batch in progress, kept on disk so that a crash costs a minute and not a day."""

from __future__ import annotations

import logging
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np

from efhc_jax.errors import DataError


class Checkpoints:
    """Saves nested dicts of arrays now and then, and gives back the newest that is whole.

    Args:
        folder: where they are kept; removed by `clear`.
        seconds: the least time from one to the next.
    """

    def __init__(self, folder: str | Path, seconds: float = 60.0):
        self.folder = Path(folder).absolute()
        self.seconds = seconds
        self._last = time.monotonic()
        self._manager: Any = None

    def due(self) -> bool:
        """Whether it is time for the next."""
        return time.monotonic() - self._last >= self.seconds

    def save(self, position: int, tree: dict[str, Any]) -> None:
        """Keep `tree`; on return it is on disk in full. Only the two newest are kept."""
        import orbax.checkpoint as ocp

        self._open().save(position, args=ocp.args.StandardSave(tree))
        self._manager.wait_until_finished()
        self._last = time.monotonic()

    def newest(self) -> dict[str, Any] | None:
        """What was saved last, or None.

        Raises:
            DataError: there is something that cannot be read.
        """
        if not self.folder.exists():
            return None
        import jax
        import orbax.checkpoint as ocp

        manager = self._open()
        position = manager.latest_step()
        if position is None:
            return None
        try:
            tree = manager.restore(position, args=ocp.args.StandardRestore())
        except Exception as error:  # what the storage layer raises is not documented
            raise DataError(
                f"{self.folder}: the checkpoint is damaged ({_first_line(error)}); "
                "remove this folder to start this part again"
            ) from None
        return jax.tree.map(np.asarray, tree)

    def clear(self) -> None:
        """Remove what is no longer needed."""
        if self._manager is not None:
            self._manager.close()
            self._manager = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def _open(self) -> Any:
        if self._manager is None:
            import orbax.checkpoint as ocp

            logging.getLogger("absl").setLevel(logging.ERROR)
            options = ocp.CheckpointManagerOptions(
                max_to_keep=2, create=True, cleanup_tmp_directories=True
            )
            self._manager = ocp.CheckpointManager(self.folder, options=options)
        return self._manager


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
