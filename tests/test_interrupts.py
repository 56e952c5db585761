"""A first Ctrl-C asks, a second one insists, and afterwards all is as it was."""

import os
import signal
import threading

import pytest

from efhc_jax.interrupts import stop_requests


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
