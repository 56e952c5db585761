"""Progress: a bar where somebody watches, at most a line a minute elsewhere, silence when asked."""

import re
import types

import pytest

from efhc_jax.runs import progress


@pytest.fixture
def clock(monkeypatch):
    """Time that passes only when told to."""
    clock = types.SimpleNamespace(now=1000.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(progress, "time", clock)
    return clock


def reports(clock, report, seconds, each):
    """Report `each` iterations more every second."""
    for second in range(1, seconds + 1):
        clock.now += 1
        report(second * each)


def test_a_run_away_from_a_terminal_is_silent(clock, capsys):
    with progress.run_progress(10_000, "title") as report:
        reports(clock, report, 1000, 10)
    assert capsys.readouterr() == ("", "")


def test_a_sweep_away_from_a_terminal_writes_a_line_a_minute(clock, capsys):
    with progress.sweep_progress(runs=60, iterations=100) as report:
        reports(clock, report, 59, 10)
        assert capsys.readouterr() == ("", "")
        reports(clock, report, 541, 10)
    out, err = capsys.readouterr()
    assert out == ""
    assert 8 <= err.count("\n") <= 10


def test_a_line_says_what_is_done_how_fast_and_how_long(clock, capsys):
    with progress.sweep_progress(runs=4, iterations=1000) as report:
        report(0)
        clock.now += 100
        report(2500)
    line = capsys.readouterr().err
    assert line == "2 of 4 runs, 25 run-iterations/s, 1.0 minutes left\n"


def test_what_was_on_disk_says_nothing_about_the_speed(clock, capsys):
    with progress.sweep_progress(runs=4, iterations=1000) as report:
        report(2000)
        clock.now += 100
        report(3000)
    assert "3 of 4 runs, 10 run-iterations/s, 1.7 minutes left" in capsys.readouterr().err


def test_speed_is_measured_from_the_first_report_on(clock, capsys):
    with progress.sweep_progress(runs=4, iterations=1000) as report:
        clock.now += 50
        report(1000)
        clock.now += 50
        report(1500)
        clock.now += 50
        report(2000)
    assert set(re.findall(r"(\S+) run-iterations/s", capsys.readouterr().err)) == {"10"}


@pytest.mark.parametrize(
    "begin",
    [
        lambda: progress.run_progress(100, "title", show=False),
        lambda: progress.sweep_progress(10, 100, show=False),
    ],
)
def test_silence_when_asked(clock, capsys, begin):
    with begin() as report:
        reports(clock, report, 200, 5)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("begin", "shown"),
    [
        (lambda: progress.run_progress(1500, "efhc on mnist", show=True), "1,500/1,500"),
        (lambda: progress.sweep_progress(3, 500, show=True), "3 of 3 runs"),
    ],
)
def test_a_bar_on_standard_error(capsys, begin, shown):
    with begin() as report:
        report(1500)
    out, err = capsys.readouterr()
    assert out == ""
    assert shown in err
