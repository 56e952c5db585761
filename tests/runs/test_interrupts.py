"""A first Ctrl-C asks, a second one insists, and afterwards all is as it was."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from efhc_jax.runs.interrupts import stop_requests


@pytest.fixture(autouse=True)
def usual_handlers():
    """Python's own handlers, whatever the test runner has set."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, raise_termination)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class Termination(Exception):
    pass


def raise_termination(number, frame):
    raise Termination


def send(number):
    os.kill(os.getpid(), number)


def test_nobody_has_asked():
    with stop_requests() as should_stop:
        assert not should_stop()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_only_noted(number):
    with stop_requests() as should_stop:
        send(number)
        assert should_stop()


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("second", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Termination)]
)
def test_the_second_signal_does_what_it_always_did(first, second, error):
    with stop_requests():
        send(first)
        with pytest.raises(error):
            send(second)


@pytest.mark.parametrize("signals", [0, 1])
def test_handlers_are_restored(signals):
    with stop_requests():
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        for _ in range(signals):
            send(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is raise_termination


def test_handlers_are_restored_after_an_error():
    with pytest.raises(ValueError, match="inside"), stop_requests():
        raise ValueError("inside")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_leave_signals_alone():
    found = []

    def work():
        with stop_requests() as should_stop:
            found.append((should_stop(), signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [(False, signal.default_int_handler)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ignored_signals_stay_ignored(number):
    """A shell script starts jobs in the background with SIGINT ignored."""
    signal.signal(number, signal.SIG_IGN)
    with stop_requests() as should_stop:
        send(number)
        assert not should_stop()
        assert signal.getsignal(number) is signal.SIG_IGN
    assert signal.getsignal(number) is signal.SIG_IGN


MODULE = [sys.executable, "-m", "efhc_jax"]
SCRIPT = [str(Path(sys.executable).with_name("efhc"))]
LONG_RUN = ["run", "--dataset", "synthetic", "--iterations", "1000000", "--eval-every", "100000"]

# Python imports sitecustomize when it starts. This one writes to a pipe once the command has installed
# its handler; before that, Python's own handler applies.
ANNOUNCE = """
import os, signal
install = signal.signal
def announce(number, handler):
    before = install(number, handler)
    if number == signal.SIGINT and getattr(handler, "__name__", "").startswith("stop"):
        os.write(int(os.environ["TEST_READY"]), b"ready")
    return before
signal.signal = announce
"""


@pytest.mark.parametrize("after", [0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 3.0])
@pytest.mark.parametrize("command", [MODULE, SCRIPT], ids=["module", "script"])
def test_ctrl_c_in_the_first_seconds(tmp_path, command, after):
    (tmp_path / "sitecustomize.py").write_text(ANNOUNCE)
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [*command, *LONG_RUN, "--out", str(tmp_path / "out")],
        env=os.environ | {"PYTHONPATH": str(tmp_path), "TEST_READY": str(writer)},
        pass_fds=[writer],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writer)
    try:
        assert os.read(reader, 5) == b"ready"
        time.sleep(after)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    finally:
        os.close(reader)
        process.kill()
        process.wait()
    assert (process.returncode, errors) == (130, "efhc: stopped\n")


WORK = {
    "in a callback of the garbage collector": (
        "gc.callbacks.append(lambda *_: os.kill(os.getpid(), 2)); gc.collect()"
    ),
    "in a finalizer": "Thing()",
    "in an import": "import interrupted",
    "when the work is done": "atexit.register(os.kill, os.getpid(), 2)",
}


@pytest.mark.parametrize("where", WORK)
def test_ctrl_c_is_not_lost(tmp_path, where):
    """Where Python drops exceptions or turns them into a crash, the process ends at once."""
    (tmp_path / "interrupted.py").write_text(
        "import os\ntry:\n    os.kill(os.getpid(), 2)\nexcept KeyboardInterrupt:\n    pass\n"
    )
    program = (
        "import atexit, gc, os, sys\n"
        "import efhc_jax.cli\n"
        "from efhc_jax.__main__ import entry\n"
        "class Thing:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), 2)\n"
        "def work():\n"
        f"    {WORK[where]}\n"
        "    print('carried on', flush=True)\n"
        "    sys.exit(0)\n"
        "efhc_jax.cli.entry = work\n"
        "entry()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (130, "efhc: stopped\n")
    assert done.stdout == ("carried on\n" if where == "when the work is done" else "")


def test_ctrl_c_is_ignored_in_the_background():
    program = (
        "import os, signal, sys\n"
        "import efhc_jax.cli\n"
        "from efhc_jax.__main__ import entry\n"
        "def work():\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    print('carried on', flush=True)\n"
        "    sys.exit(0)\n"
        "efhc_jax.cli.entry = work\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "try:\n"
        "    entry()\n"
        "finally:\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "carried on\n", "")
