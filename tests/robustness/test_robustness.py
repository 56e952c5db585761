"""Terminals, folders and settings that nobody would wish for."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import efhc_jax as efhc
from efhc_jax.cli import main
from efhc_jax.results.history import _MOST_PARTS, History
from efhc_jax.storage.checkpoints import Checkpoints

ROOT = Path(__file__).parents[2]
WORDS = [
    *("run", "--dataset", "synthetic", "--devices", "4"),
    *("--iterations", "6", "--eval-every", "3"),
]


def command(words, **options):
    command = [sys.executable, "-m", "efhc_jax", *words]
    return subprocess.run(command, capture_output=True, check=False, **options)


def test_a_terminal_that_cannot_show_a_name(tmp_path):
    done = command(
        [*WORDS, "--out", tmp_path / "模型"], env=os.environ | {"PYTHONIOENCODING": "ascii:strict"}
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"\u6a21\u578b" in done.stdout


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_output_that_was_closed(tmp_path, closed):
    words = " ".join([*WORDS, "--out", str(tmp_path / "out")])
    shell = f"{sys.executable} -m efhc_jax {words} {closed}"
    assert subprocess.run(shell, shell=True, capture_output=True, check=False).returncode == 0
    assert len(list((tmp_path / "out").glob("*.nc"))) == 1


def test_a_full_device_for_output(tmp_path):
    with Path("/dev/full").open("w") as full:
        code = [sys.executable, "-m", "efhc_jax", "data"]
        done = subprocess.run(code, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert done.returncode != 0


def test_a_run_in_a_folder_that_is_in_use(tmp_path, capsys, monkeypatch):
    from efhc_jax.disk.locks import held

    monkeypatch.setattr("efhc_jax.runs.simulation.advance", lambda *a: pytest.fail("the work began"))
    with held(tmp_path):
        assert main([*WORDS, "--out", str(tmp_path)]) == 2
    assert f"out={tmp_path}: another process ({os.getpid()} on " in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_may_be_a_link(tmp_path, capsys):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert main([*WORDS, "--out", str(tmp_path / "link")]) == 0
    assert len(list((tmp_path / "real").glob("*.nc"))) == 1
    (tmp_path / "nowhere").symlink_to("gone/away")
    assert main([*WORDS, "--out", str(tmp_path / "nowhere")]) == 2
    assert "cannot be written to" in capsys.readouterr().err


@pytest.mark.parametrize("graph", ["geometric", "complete", "ring"])
def test_more_devices_than_memory_holds(graph, capsys, monkeypatch):
    monkeypatch.setattr("efhc_jax.runs.simulation.prepare", lambda *a: pytest.fail("the work began"))
    assert main(["run", "--dataset", "synthetic", "--devices", "1000000000", "--graph", graph]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("efhc: error: devices=1000000000: a single run needs about ")
    assert "try fewer devices" in shown


def test_more_runs_than_anybody_waits_for():
    with pytest.raises(
        efhc.ExperimentError, match="more than 100,000 runs; split them into several sweeps"
    ):
        efhc.sweep(efhc.Experiment(dataset="synthetic"), seed=range(10**9))
    with pytest.raises(efhc.ExperimentError, match="seed, r: more than 100,000 runs"):
        efhc.sweep(efhc.Experiment(dataset="synthetic"), seed=range(1000), r=range(1000))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("r = " + "9" * 5000, "is not valid TOML"),
        ("seed = 0x" + "F" * 5000, r"seed=\(int too long to show\): out of range"),
        ("r = " + "[" * 100_000, "is not valid TOML"),
        ("model = '" + "x" * 10_000 + "'", "model='x{70,80}…: unknown"),
        ("mean_bandwidth = 1e300", r"mean_bandwidth=1e\+300: out of range; .* at most 1e\+30"),
        ("dynamics = 'trace'\ngraph_file = 3", "graph_file=3: give the name of a file"),
        ("#" * 2**20 + "\n", "is too large"),
    ],
)
def test_settings_too_large_to_be_true(tmp_path, content, message):
    path = tmp_path / "my.toml"
    path.write_text(content)
    with pytest.raises(efhc.ExperimentError, match=f"my.toml: {message}") as caught:
        efhc.Experiment.from_toml(path)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("text", ["[]", "3", "null", "{", "", "[" * 100_000, None])
def test_an_experiment_that_is_not_one(text):
    with pytest.raises(efhc.ExperimentError, match="not a JSON object"):
        efhc.Experiment.from_json(text)


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    one, two = {"experiment": {"r": 5.0}, "bits": 32}, {"experiment": {"r": 6.0}, "bits": 32}
    Checkpoints(tmp_path, belongs_to=one).save(1, {"a": {"b": 1.0}})
    assert Checkpoints(tmp_path, belongs_to=one).newest() is not None
    said = r"belongs to other work \(r is 5.0 there and 6.0 here\); remove this folder"
    with pytest.raises(efhc.DataError, match=said):
        Checkpoints(tmp_path, belongs_to=two).newest()


def test_a_checkpoint_of_another_version_is_refused(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("efhc_jax.storage.checkpoints.FORMAT", 99)
        Checkpoints(tmp_path).save(1, {"a": 1.0})
    with pytest.raises(efhc.DataError, match="is from another version of efhc-jax; remove this folder"):
        Checkpoints(tmp_path).newest()


def test_a_checkpoint_that_cannot_be_saved_says_why(tmp_path, monkeypatch):
    class Full:
        def save(self, *arguments, **options):
            raise ValueError(
                "RESOURCE_EXHAUSTED: 379905 bytes\nNo space left on device [os_error_code='28']"
            )

    checkpoints = Checkpoints(tmp_path)
    monkeypatch.setattr(checkpoints, "_open", Full)
    with pytest.raises(efhc.DataError, match=r"could be saved \(No space left on device\); fix this"):
        checkpoints.save(1, {"a": 1.0})


def test_a_wrong_clock_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("time.time", lambda: -1e9)
    checkpoints = Checkpoints(tmp_path, seconds=0)
    checkpoints.save(1, {"position": 1.0})
    monkeypatch.setattr("time.time", lambda: 4e9)
    checkpoints.save(2, {"position": 2.0})
    monkeypatch.setattr("time.time", lambda: 0.0)
    assert checkpoints.due()
    assert float(Checkpoints(tmp_path).newest()["position"]) == 2.0


def test_history_does_not_hold_more_than_what_it_was_given():
    """Views keep the accelerator's buffers; thousands of small pieces take more than they hold."""
    history = History(1, 2)
    for chunk in range(200):
        recorded = {
            "train_loss": np.full((1, 5), chunk, np.float32),
            "transmission_time": np.ones((1, 5), np.float32),
            "finite": np.ones((1, 5, 2), bool),
        }
        history.add_steps(recorded, 5 * chunk)
        assert not np.shares_memory(history.steps[-1]["train_loss"], recorded["train_loss"])
    assert len(history.steps) < _MOST_PARTS
    joined = np.concatenate([part["train_loss"] for part in history.steps], axis=1)
    np.testing.assert_array_equal(joined[0], np.repeat(np.arange(200), 5))


def test_the_list_of_licences_is_current():
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "licences", "--check"], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_everything_is_pinned_with_hashes(lock):
    text = (ROOT / lock).read_text(encoding="utf-8").replace("\\\n", "")
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    assert len(lines) > 50
    for line in lines:
        assert re.match(r"\S+==\S+ .*--hash=sha256:[0-9a-f]{64}", line), line
