"""The command `efhc`, and `python -m efhc_jax`.

It imports next to nothing before Ctrl-C is taken care of: imports take the first second of a command,
and Python's own handler would end them in a traceback, in an abort of a C++ extension, or not at all.
"""

import gc
import os
import signal
import sys

TYPE_CHECKING = False  # importing typing for it would cost more than all the rest

if TYPE_CHECKING:
    from types import FrameType
    from typing import Any


def entry() -> None:
    """The console script."""
    signal.signal(signal.SIGINT, stop)
    before = sys.unraisablehook

    def hook(lost: "Any") -> None:
        if lost.exc_type is KeyboardInterrupt:
            stop_at_once()
        before(lost)

    sys.unraisablehook = hook

    from efhc_jax.cli import entry

    try:
        entry()
    except KeyboardInterrupt:
        stop_at_once()
    except SystemExit as end:
        if end.code == 130:
            end_without_threads(130)
        raise
    finally:  # what Python does at its end cannot be interrupted in good order
        signal.signal(signal.SIGINT, stop_at_once)


def stop(number: int, frame: "FrameType | None") -> None:
    """Raise `KeyboardInterrupt` where it reaches those who clean up, and end the process elsewhere."""
    dropping = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    while frame is not None:
        if frame.f_code in dropping or frame.f_code.co_filename.startswith("<frozen importlib"):
            stop_at_once()
        frame = frame.f_back
    raise KeyboardInterrupt


def stop_at_once(*signal_and_frame: object) -> None:
    """End the process as `efhc_jax.cli.main` does after Ctrl-C, from anywhere."""
    try:
        for stream in (1, 2):
            if os.isatty(stream):
                os.write(stream, b"\x1b[?25h")  # a progress bar may have hidden the cursor
        os.write(2, b"efhc: stopped\n")
    finally:  # whether or not anybody listens
        os._exit(130)


def end_without_threads(code: int) -> None:
    """End the process if Python would first wait for threads: those of a download may take minutes."""
    import threading

    if all(thread.daemon or thread is threading.main_thread() for thread in threading.enumerate()):
        return
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    entry()
