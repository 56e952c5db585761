"""The doctor: all is well here, and each thing that is not is found with what to do."""

import importlib.metadata

import numpy as np
import pytest

import efhc_jax as efhc
from efhc_jax.cli import main
from efhc_jax.runs import diagnosis

EXPERIMENT = efhc.Experiment(dataset="synthetic", iterations=60, eval_every=30, r=500.0)


@pytest.fixture(scope="module")
def trace():
    return efhc.simulate(EXPERIMENT, trace=True, progress=False)


def test_all_is_well(capsys):
    code = main(["doctor"])
    shown = capsys.readouterr().out
    assert code == 0, shown
    assert "self-test" in shown
    assert shown.splitlines()[-1].startswith("no problems")


@pytest.mark.parametrize(
    ("states", "words"),
    [
        (["ok", "ok"], "no problems"),
        (["ok", "note"], "no problems, 1 note"),
        (["note", "note"], "no problems, 2 notes"),
        (["problem", "ok"], "1 problem"),
        (["problem", "problem", "note"], "2 problems, 1 note"),
    ],
)
def test_notes_are_counted_and_are_no_problems(capsys, monkeypatch, states, words):
    checks = [diagnosis.Check("what", state, "found") for state in states]
    monkeypatch.setattr(diagnosis, "diagnose", lambda: checks)
    assert main(["doctor"]) == ("problem" in states)
    assert capsys.readouterr().out.splitlines()[-1] == words


@pytest.mark.parametrize("command", ["doctor", "data"])
def test_how_to_get_the_data_is_said_once(capsys, monkeypatch, command):
    monkeypatch.setattr("efhc_jax.data.fashion_mnist.locate", lambda *a: None)
    monkeypatch.setattr(diagnosis, "_self_test", lambda: diagnosis.Check("self-test", "ok", ""))
    main([command])
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert shown.count("apt install") == 1
    assert shown.count("efhc data --fetch") == 1
    assert shown.count("was not found") == (command == "data")


def test_the_cores_of_a_cpu_are_not_accelerators(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert diagnosis._accelerators().found == "none, 2 CPU cores"


def test_a_problem_is_counted_and_advised_on(capsys, monkeypatch):
    wrong = diagnosis.Check("self-test", "problem", "P is not doubly stochastic", "try another jaxlib")
    monkeypatch.setattr(diagnosis, "_self_test", lambda: wrong)
    assert main(["doctor"]) == 1
    shown = capsys.readouterr().out
    assert "1 problem" in shown
    assert "self-test: try another jaxlib" in shown


def test_missing_data_are_a_note_and_damaged_data_a_problem(monkeypatch, tmp_path):
    monkeypatch.setattr("efhc_jax.data.fashion_mnist.locate", lambda *a: None)
    full, mini, synthetic = diagnosis._datasets()
    assert (full.state, mini.state, synthetic.state) == ("note", "ok", "ok")
    assert "efhc data --fetch" in full.advice
    monkeypatch.undo()
    monkeypatch.setenv("EFHC_DATA_DIR", str(tmp_path))
    full = diagnosis._datasets()[0]
    assert full.state == "problem"
    assert "EFHC_DATA_DIR" in full.advice


def test_a_package_that_does_not_fit_is_named(monkeypatch):
    real = importlib.metadata.version
    monkeypatch.setattr(
        importlib.metadata, "version", lambda name: "0.1" if name == "optax" else real(name)
    )
    found = diagnosis._packages()
    assert found.state == "problem"
    assert "optax 0.1 is not >=" in found.found


def test_an_extra_that_is_missing_is_a_note(monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert [check.state for check in diagnosis._extras()] == ["note", "note"]


def test_a_check_that_fails_is_a_problem():
    def odd():
        raise ZeroDivisionError("nobody thought of this")

    (found,) = diagnosis._guarded(odd)
    assert found.state == "problem"
    assert "nobody thought of this" in found.found


def test_little_memory_is_a_problem(monkeypatch):
    monkeypatch.setattr("efhc_jax.runs.machine.free_memory", lambda: 10**8)
    assert diagnosis._memory().state == "problem"


def test_nothing_is_broken_in_a_good_run(trace):
    assert diagnosis._broken_properties(EXPERIMENT, trace) == []
    assert 0.05 < float(trace.used_links.mean() / trace.adjacency.mean()) < 0.95, "P is not trivial"


def test_a_broken_engine_is_found(trace):
    other = trace.copy(deep=True)
    other.weights.values[30, 2, 5] = np.nan
    assert diagnosis._broken_properties(EXPERIMENT, other) == ["a model is not finite"]
    other = trace.copy(deep=True)
    other.weights.values[31] += 0.05
    assert diagnosis._broken_properties(EXPERIMENT, other) == ["W(k+1) is not P(k)W(k) − α(k)G(k)"]
    other = trace.copy(deep=True)
    other.used_links.values[:, 0, :] = ~other.used_links.values[:, 0, :]
    assert "P is not doubly stochastic" in diagnosis._broken_properties(EXPERIMENT, other)
