"""Time until the help is shown, and until the first iterations of a run."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.data import images_of_paper
from benchmarks.processes import in_own_process, machine, now, versions
from benchmarks.report import Verdict
from efhc_jax.errors import EfhcError

HELP = "efhc --help"
COLD = "efhc run, first iterations, nothing compiled before"
WARM = "efhc run, first iterations, from the second time on"
TARGETS = {HELP: 0.5, COLD: 6.0, WARM: 6.0}  # seconds

_ITERATIONS = re.compile(rb"\b([1-9][\d,]*)/[\d,]+")  # of the progress bar
_COLOURS = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")


def run(quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Start the commands as a user would, several times."""
    began, clock = now(), time.perf_counter()
    tries = 2 if quick else 5
    dataset = images_of_paper(full=not quick).name
    say(f"efhc --help and efhc run, {tries} times")
    starts = [{"what": HELP, "samples": [seconds_of_help() for _ in range(tries)]}]
    cold, warm, kept = [], [], 0
    for _ in range(1 if quick else 2):
        with tempfile.TemporaryDirectory() as folder:
            cold.append(seconds_to_first_iterations(dataset, Path(folder)))
            kept = sum(1 for _ in (Path(folder) / "cache").rglob("*-cache"))
            warm += [seconds_to_first_iterations(dataset, Path(folder)) for _ in range(tries)]
    starts += [{"what": COLD, "samples": cold}, {"what": WARM, "samples": warm}]
    return {
        "suite": "startup",
        "quick": quick,
        "began": began,
        "seconds": time.perf_counter() - clock,
        "versions": versions(),
        "machines": [in_own_process(machine)],
        "dataset": dataset,
        "programs_kept": kept,
        "starts": starts,
        "verdicts": [verdict.to_dict() for verdict in verdicts(starts)],
    }


def seconds_of_help() -> float:
    """Seconds of `efhc --help`."""
    began = time.perf_counter()
    subprocess.run([*_command(), "--help"], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def seconds_to_first_iterations(dataset: str, folder: Path) -> float:
    """Seconds from the command until its progress bar shows iterations.

    The bar moves after the first evaluation and a chunk of iterations, so this is a little more than the
    time of the first iteration. Compiled programs are cached in the folder.
    """
    environment = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": str(folder / "cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.3",
        "COLUMNS": "120",
        "TERM": "xterm",
    }
    words = ["run", "--dataset", dataset, "--iterations", "300", "--out", str(folder / "out")]
    screen, terminal = pty.openpty()
    began = time.perf_counter()
    with subprocess.Popen(
        [*_command(), *words],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=terminal,
    ) as process:
        os.close(terminal)
        seconds, seen = None, b""
        for seen in _written_to(screen):
            if seconds is None and _ITERATIONS.search(_COLOURS.sub(b"", seen)):
                seconds = time.perf_counter() - began
        os.close(screen)
    if process.returncode or seconds is None:
        raise EfhcError(f"bench: efhc run ended with code {process.returncode}: {seen.decode()}")
    return seconds


def _written_to(screen: int) -> Iterator[bytes]:
    """The output of a terminal so far, repeatedly until it is closed."""
    seen = b""
    while True:
        try:
            more = os.read(screen, 4096)
        except OSError:  # on Linux, the other side is closed
            return
        if not more:
            return
        seen += more
        yield seen


def _command() -> list[str]:
    installed = shutil.which("efhc", path=str(Path(sys.executable).parent))
    return [installed] if installed else [sys.executable, "-m", "efhc_jax"]


def verdicts(starts: list[dict[str, Any]]) -> list[Verdict]:
    """Every target with the measured value."""
    return [
        Verdict(one["what"], "seconds", min(one["samples"]), TARGETS[one["what"]], at_least=False)
        for one in starts
    ]
