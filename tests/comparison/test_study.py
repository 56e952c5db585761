"""The study: the best candidate for each criterion, and the whole of it in a small size."""

import json

import numpy as np
import pytest

from efhc_jax.cli import main
from efhc_jax.comparison import contenders
from efhc_jax.comparison.contenders import SIZES, Candidate
from efhc_jax.comparison.study import Study, Tuned, choose, described

SMALL = SIZES["quick"]["svm"]._replace(
    dataset="synthetic",
    gradients=8,
    eval_every=4,
    early_evaluations=1,
    learning_rates=(0.1, 1.0),
    rounds=2,
    tuning_seeds=(7,),
    seeds=2,
)


def test_each_criterion_chooses_its_own_candidate():
    study = Study("svm", SMALL, ["efhc", "d2"], data=None, out=None)
    tuned = [
        Tuned(Candidate("efhc", 0, {}), [50.0, 60.0, 70.0]),
        Tuned(Candidate("efhc", 1, {}), [55.0, np.nan, 70.0]),
        Tuned(Candidate("efhc", 2, {}), [40.0, 70.0, np.nan]),
        Tuned(Candidate("d2", 0, {}), [np.nan, 1.0, np.nan]),
    ]
    found = choose(study, tuned)
    assert [one.number for one in found["efhc"]] == [1, 2, 0]
    assert [one and one.number for one in found["d2"]] == [None, 0, None]


def test_candidates_are_said_in_words():
    settings = {"participation.links_a": 0.1, "participation.links_b": 0.1, "learning_rate": 0.3}
    one = Candidate("dspodfl", 0, settings)
    assert described(one) == "link probability 0.1, step size 0.3"
    assert described(one, "learning_rate", marked=["participation.links_a"]) == "link probability 0.1*"


def test_the_command_tunes_compares_draws_and_resumes(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(contenders.SIZES["quick"], "svm", SMALL)
    command = ["compare-methods", "--preset", "quick", "--contenders", "dpsgd", "--out", str(tmp_path)]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "tuning 2 of 2: dpsgd" in said
    assert (tmp_path / "svm.png").stat().st_size > 10_000
    found = json.loads((tmp_path / "svm.json").read_text())
    assert {row["contender"] for row in found["rows"]} == {"efhc", "dpsgd"}
    assert all(0 < row["accuracy"] <= 100 and row["seeds"] == 2 for row in found["rows"])
    assert len(found["tuning"]) == 4
    table = (tmp_path / "svm.md").read_text()
    assert table in said
    sweeps = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("sweep.nc")}
    assert len(sweeps) >= 4
    assert main(command) == 0
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("sweep.nc")} == sweeps
    assert (tmp_path / "svm.md").read_text() == table


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seeds", "1"], "seeds=1: intervals need 2 or more"),
        (["--contenders", "chocolate"], "choose from"),
    ],
)
def test_wrong_arguments_are_answered(arguments, message, tmp_path, capsys):
    assert main(["compare-methods", *arguments, "--out", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err
