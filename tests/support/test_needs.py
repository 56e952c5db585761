"""Tests with special needs are skipped and counted without them, and never skipped under --no-skips."""

import os
import subprocess
from pathlib import Path

import pytest

from needs import NEEDS

pytest_plugins = ["pytester"]

NO_TORCH = """
import needs
needs.NEEDS["torch"] = needs.NEEDS["torch"]._replace(is_met=lambda: False)
needs.NEEDS["browser"] = needs.NEEDS["browser"]._replace(is_met=lambda: True)
"""
MARKED = """
import pytest

@pytest.mark.torch
@pytest.mark.parametrize("number", [1, 2])
def test_with_torch(number):
    assert False, "it is not there"

@pytest.mark.browser
def test_with_browser():
    pass
"""
SKIPS = {
    "test_call": "import pytest\ndef test_it(): pytest.skip('as I like')",
    "test_fixture": (
        "import pytest\n@pytest.fixture\ndef one(): pytest.skip('as I like')\ndef test_it(one): pass"
    ),
    "test_mark": "import pytest\n@pytest.mark.skip(reason='as I like')\ndef test_it(): pass",
    "test_unittest": "import unittest\ndef test_it(): raise unittest.SkipTest('as I like')",
    "test_module": "import pytest\npytest.skip('as I like', allow_module_level=True)",
    "test_import": "import pytest\npytest.importorskip('nothing_of_this_name', reason='as I like')",
}


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Run pytest on the files of a folder of its own, on a machine with a browser and no PyTorch."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take seconds to import
    pytester.makeconftest(NO_TORCH)

    def once(*arguments: str) -> pytest.RunResult:
        return pytester.runpytest_subprocess(
            "-p", "xdist", "-p", "needs", "--strict-markers", *arguments
        )

    return once


@pytest.mark.parametrize("processes", ["0", "1"])
def test_what_cannot_run_is_skipped_and_counted_by_reason(pytester, run, processes):
    pytester.makepyfile(test_marked=MARKED, **SKIPS)
    done = run("-n", processes)
    done.assert_outcomes(passed=1, skipped=2 + len(SKIPS))
    assert done.ret == 0
    assert f"{len(SKIPS)} skipped: as I like" in done.outlines
    assert f"2 skipped: {NEEDS['torch'].reason}" in done.outlines
    assert "FAILED" not in done.stdout.str()


@pytest.mark.parametrize("processes", ["0", "1"])
def test_no_way_to_skip_escapes_the_option(pytester, run, processes):
    pytester.makepyfile(test_marked=MARKED, **SKIPS)
    done = run("--no-skips", "-n", processes)
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    assert f"{len(SKIPS)} skipped: as I like" in done.outlines
    assert f"2 skipped: {NEEDS['torch'].reason}" in done.outlines
    assert "FAILED: with --no-skips, every test has to run" in done.outlines


def test_the_option_is_content_where_every_test_ran(pytester, run):
    pytester.makepyfile("def test_it(): pass")
    done = run("--no-skips", "-n", "1")
    done.assert_outcomes(passed=1)
    assert done.ret == 0
    assert "skipped" not in done.stdout.str()


@pytest.mark.parametrize(("arguments", "code"), [([], 0), (["--no-skips"], 1)])
def test_a_machine_on_which_nothing_can_be_hidden(tmp_path, arguments, code):
    """`scripts/test_fresh` must not pass in .ci/run without having tested anything."""
    unshare = tmp_path / "unshare"
    unshare.write_text("#!/bin/sh\nexit 1\n")
    unshare.chmod(0o755)
    script = Path(__file__).parents[2] / "scripts" / "test_fresh"
    done = subprocess.run(
        [str(script), *arguments],
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (code, "")
    assert "not run" in done.stderr
    assert "scripts/test_fresh --no-skips" in (script.parents[1] / ".ci" / "run").read_text()
