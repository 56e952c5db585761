"""The command `efhc`, and `python -m efhc_jax`.

It imports almost nothing before the handler of Ctrl-C is installed. The other imports take about a
second; if Python's own handler interrupted them, the command could print a traceback, abort inside a C++
extension, or ignore the signal.
"""

import gc
import os
import signal
import sys

TYPE_CHECKING = False  # importing typing takes longer than everything else here

if TYPE_CHECKING:
    from types import FrameType
    from typing import Any


def entry() -> None:
    """The console script.

    If SIGINT is ignored, as in background jobs of a shell script, it stays ignored.
    """
    handles_interrupts = signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    if handles_interrupts:  # until anything is begun, there is nothing to finish
        signal.signal(signal.SIGINT, stop_at_once)
    before = sys.unraisablehook

    def hook(lost: "Any") -> None:
        if lost.exc_type is KeyboardInterrupt:
            stop_at_once()
        before(lost)

    sys.unraisablehook = hook

    from efhc_jax.cli import entry

    try:
        if handles_interrupts:
            signal.signal(signal.SIGINT, stop)
        entry()
    except KeyboardInterrupt:
        stop_at_once()
    except SystemExit as end:
        if end.code == 130:
            end_without_threads(130)
        raise
    finally:  # the shutdown of the interpreter cannot be interrupted cleanly
        if handles_interrupts:
            signal.signal(signal.SIGINT, stop_at_once)


def stop(number: int, frame: "FrameType | None") -> None:
    """Raise `KeyboardInterrupt`, or end the process where Python would lose the exception."""
    dropping = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    while frame is not None:
        if frame.f_code in dropping or frame.f_code.co_filename.startswith("<frozen importlib"):
            stop_at_once()
        frame = frame.f_back
    raise KeyboardInterrupt


def stop_at_once(*signal_and_frame: object) -> None:
    """Print the same message as `efhc_jax.cli.main` after Ctrl-C and end the process immediately."""
    try:
        for stream in (1, 2):
            if os.isatty(stream):
                os.write(stream, b"\x1b[?25h")  # a progress bar may have hidden the cursor
        os.write(2, b"efhc: stopped\n")
    finally:  # even if the output is closed
        os._exit(130)


def end_without_threads(code: int) -> None:
    """End the process without waiting for other threads: those of a download may take minutes."""
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
