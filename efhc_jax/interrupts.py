"""Stopping in good order: a first Ctrl-C asks, a second one insists."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def stop_requests() -> Iterator[Callable[[], bool]]:
    """Whether somebody has asked to stop, by Ctrl-C or by a scheduler's SIGTERM.

    Inside the block the first such signal is only noted, so that work can be saved. The next one ends
    the process as usual.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return

    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, frame: object) -> None:
        asked.set()
        restore()

    for number in _SIGNALS:
        signal.signal(number, note)
    try:
        yield asked.is_set
    finally:
        restore()
