"""Graceful interruption: the first Ctrl-C saves and stops, a second one stops immediately."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def stop_requests() -> Iterator[Callable[[], bool]]:
    """A function that returns whether Ctrl-C was pressed or SIGTERM was received.

    Inside the block the first such signal is only recorded, so that work can be saved. The next one
    ends the process. Signals that are ignored stay ignored.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return

    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    before = {number: found for number, found in handlers.items() if found is not signal.SIG_IGN}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, frame: object) -> None:
        asked.set()
        restore()

    for number in before:
        signal.signal(number, note)
    try:
        yield asked.is_set
    finally:
        restore()
