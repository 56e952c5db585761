"""What some tests need beyond Python and pip, and what becomes of them where it is missing.

Such a test is marked `full_data`, `browser`, `torch` or `compilers`, and skipped where that is not
installed. The end of the output counts the skipped tests by reason. With `--no-skips`, as in CI, a run
with a skipped test fails, whatever the reason.
"""

import importlib.util
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from browser import PROGRAM
from efhc_jax.data import fashion_mnist
from efhc_jax.errors import DataError


class Need(NamedTuple):
    """Something that tests need, in words, and whether this machine has it."""

    reason: str
    is_met: Callable[[], bool]


def _has_full_data() -> bool:
    try:
        return bool(fashion_mnist.where())
    except DataError:  # it is there and damaged, which the tests are to say
        return True


NEEDS = {
    "full_data": Need(
        "needs the full Fashion-MNIST (apt install dataset-fashion-mnist, or efhc data --fetch)",
        _has_full_data,
    ),
    "browser": Need("needs Chromium (apt install chromium)", lambda: PROGRAM is not None),
    "torch": Need(
        'needs PyTorch (pip install -e ".[bench]")',
        lambda: importlib.util.find_spec("torch") is not None,
    ),
    "compilers": Need(
        "needs the compilers for accelerators (scripts/compilers)",
        lambda: any((Path(__file__).parents[2] / ".compilers").glob("installed-*")),
    ),
}


class SkipCount:
    """Counts skipped tests and modules by reason, for the summary and for `--no-skips`."""

    def __init__(self, forbidden: bool) -> None:
        self._forbidden = forbidden
        self._reasons: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test."""
        self._count(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count a module that is skipped as a whole."""
        self._count(report)

    def _count(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            _, _, reason = report.longrepr
            self._reasons[reason.removeprefix("Skipped: ")] += 1

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail if something was skipped that may not be."""
        if self._forbidden and self._reasons and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write a line for each reason."""
        if not self._reasons:
            return
        terminalreporter.section("skipped")
        for reason, count in self._reasons.most_common():
            terminalreporter.line(f"{count} skipped: {reason}")
        if self._forbidden:
            terminalreporter.line("FAILED: with --no-skips, every test has to run", red=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--no-skips`."""
    parser.addoption("--no-skips", action="store_true", help="fail if any test is skipped")


def pytest_configure(config: pytest.Config) -> None:
    """Make the marks known; reports of all processes arrive at the one that has no `workerinput`."""
    for mark, need in NEEDS.items():
        config.addinivalue_line("markers", f"{mark}: {need.reason}")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(SkipCount(config.getoption("no_skips")))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests whose needs are not met."""
    unmet = {mark: need.reason for mark, need in NEEDS.items() if not need.is_met()}
    for item in items:
        for mark, reason in unmet.items():
            if item.get_closest_marker(mark):
                item.add_marker(pytest.mark.skip(reason=reason))
