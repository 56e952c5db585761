"""Live logging: what was reached comes out at the right iterations, in both kinds of file."""

import sys

import pytest

import efhc_jax as efhc
from efhc_jax.cli import main
from efhc_jax.runs.loggers import LOGGERS, make_logger
from efhc_jax.runs.simulation import Control

SMALL = efhc.Experiment(dataset="synthetic", devices=4, iterations=6, eval_every=3)
WORDS = [
    *("run", "--dataset", "synthetic", "--devices", "4"),
    *("--iterations", "6", "--eval-every", "3"),
]


class Kept:
    """A logger that only remembers."""

    def __init__(self):
        self.entries = []
        self.closed = False

    def log(self, values, iteration):
        self.entries.append((iteration, values))

    def close(self):
        self.closed = True


@pytest.fixture(scope="module")
def run():
    return efhc.simulate(SMALL, progress=False)


def test_evaluations_and_means_of_chunks_are_logged_as_they_come(run):
    logger = Kept()
    logged = efhc.simulate(SMALL, progress=False, control=Control(logger=logger))
    assert logged.equals(run), "to log changes nothing"
    assert [iteration for iteration, _ in logger.entries] == [0, 3, 3, 6, 6]
    evaluations = [values for _, values in logger.entries if "accuracy" in values]
    chunks = [values for _, values in logger.entries if "train_loss" in values]
    assert (len(evaluations), len(chunks)) == (3, 2)
    for values, expected in zip(evaluations, run.accuracy.mean("device").values, strict=True):
        assert values["accuracy"] == pytest.approx(float(expected))
    assert chunks[1]["train_loss"] == pytest.approx(float(run.train_loss[3:].mean()))
    assert all(isinstance(value, float) for _, values in logger.entries for value in values.values())
    assert not any("finite" in values for _, values in logger.entries)


@pytest.mark.parametrize(("kind", "module"), [("tensorboard", "tensorboardX"), ("wandb", "wandb")])
def test_a_missing_extra_is_named(tmp_path, monkeypatch, kind, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(efhc.ExperimentError, match=rf'log={kind}: .*pip install "efhc-jax\[{kind}\]"'):
        make_logger(kind, SMALL, tmp_path, "name")


def test_an_unknown_kind_is_refused_before_the_work(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("efhc_jax.runs.simulation.advance", lambda *a: pytest.fail("the work began"))
    out = tmp_path / "out"
    assert main([*WORDS, "--log", "paper", "--out", str(out)]) == 2
    assert "log='paper': unknown; choose from tensorboard, wandb" in capsys.readouterr().err
    assert not out.exists()


def test_the_command_closes_its_logger_even_if_the_run_fails(tmp_path, monkeypatch, capsys):
    logger = Kept()
    monkeypatch.setitem(LOGGERS, "wandb", lambda experiment, folder, name: logger)
    wild = ["--model", "quadratic", "--learning-rate", "1e25", "--learning-rate-schedule", "constant"]
    assert main([*WORDS, *wild, "--log", "wandb", "--out", str(tmp_path)]) == 2
    assert logger.closed
    assert logger.entries


def test_tensorboard_files_hold_the_run(run, tmp_path, capsys):
    assert main([*WORDS, "--log", "tensorboard", "--out", str(tmp_path)]) == 0
    (file,) = (tmp_path / "tensorboard").glob("efhc-svm-synthetic-*/events.out.tfevents.*")
    accuracy = {
        event.step: value.simple_value for event, value in scalars(file) if value.tag == "accuracy"
    }
    assert accuracy == pytest.approx(
        dict(zip([0, 3, 6], run.accuracy.mean("device").values, strict=True))
    )


def scalars(file):
    """What an event file holds: records of a length, its checksum, the event, and a checksum."""
    from tensorboardX.proto.event_pb2 import Event

    content, place = file.read_bytes(), 0
    while place < len(content):
        length = int.from_bytes(content[place : place + 8], "little")
        event = Event.FromString(content[place + 12 : place + 12 + length])
        place += 12 + length + 4
        for value in event.summary.value:
            yield event, value


def test_wandb_keeps_the_run_offline(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    assert main([*WORDS, "--log", "wandb", "--out", str(tmp_path)]) == 0
    (folder,) = (tmp_path / "wandb").glob("offline-run-*")
    (file,) = folder.glob("run-*.wandb")
    content = file.read_bytes()
    for word in (b"consensus_error", b"train_loss", b"iteration", b"weak_bandwidth"):
        assert word in content
