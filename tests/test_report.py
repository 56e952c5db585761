"""The values that a report shows, and the page that holds them."""

import base64
import json
import re
import shlex

import numpy as np
import pytest

import efhc_jax as efhc
from efhc_jax.activity import activity_of, one_run
from efhc_jax.analysis import interval
from efhc_jax.cli import main, parse
from efhc_jax.report.again import command
from efhc_jax.report.packing import numbers, packed_bits, packed_shares
from efhc_jax.report.page import page, result_files, write_report
from efhc_jax.report.studies import study_values
from efhc_jax.sweeps import Grid
from small import QUADRATIC, SMALL

BASE = QUADRATIC.replace(budgets=(20.0,))
LARGE = 10**9


@pytest.fixture(scope="module")
def grid():
    return efhc.sweep(BASE, policy=["efhc", "rg"], seed=[0, 1], audit=True, progress=False)


@pytest.fixture(scope="module")
def study(grid):
    return study_values(grid, "sweep.nc", LARGE)


def bits(text, shape):
    packed = np.frombuffer(base64.b64decode(text), np.uint8)
    return np.unpackbits(packed, bitorder="little")[: np.prod(shape)].reshape(shape).astype(bool)


def shares(text, shape):
    packed = np.frombuffer(base64.b64decode(text), "<u2").astype(float).reshape(shape)
    return np.where(packed == 0xFFFF, np.nan, packed / 0xFFFE)


def embedded(path):
    """The values in a page."""
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="values">(.*?)</script>', text, re.DOTALL).group(1))


def test_packing_can_be_undone():
    rng = np.random.default_rng(0)
    booleans, values = rng.random((7, 5)) < 0.3, rng.random((4, 3))
    values[1, 2] = np.nan
    np.testing.assert_array_equal(bits(packed_bits(booleans), (7, 5)), booleans)
    np.testing.assert_allclose(shares(packed_shares(values), (4, 3)), values, atol=1e-5)
    assert numbers([1.0, np.nan, np.inf, -2.5, 1 / 3]) == [1, None, None, -2.5, 0.33333]


def test_every_run_is_there_with_its_broadcasts_and_links(grid, study):
    assert list(study["runs"]) == ["0,0", "1,0", "0,1", "1,1"], "all settings of a seed come first"
    for key, shown in study["runs"].items():
        policy, seed = map(int, key.split(","))
        run = one_run(grid, {"policy": policy, "seed": seed})
        activity = activity_of(run)
        assert shown["edges"] == {"length": 1, "steps": 40}
        assert shown["links"] == activity.links.tolist()
        np.testing.assert_array_equal(bits(shown["fired"], (40, 6)), activity.fired)
        np.testing.assert_array_equal(bits(shown["used"], activity.used.shape), activity.used)
        np.testing.assert_allclose(shown["use"], activity.used.mean(0), rtol=1e-4)
        np.testing.assert_allclose(shares(shown["accuracy"], (5, 6)), run.accuracy, atol=1e-5)
        assert sum(shown["weak"]) == 2
        assert shown["curves"]["accuracy"]["low"] == numbers(100 * run.accuracy.min("device").values)
    places = {(key[-1], shown["places"]) for key, shown in study["runs"].items()}
    assert len(places) == 2, "runs of a seed share their places"


def test_a_study_is_not_headed_by_a_value_of_what_it_sweeps(tiny):
    grid = efhc.sweep(SMALL, tiny, r=[40.0, 4000.0], devices=[4, 5])
    assert study_values(grid, "sweep.nc", 100_000)["title"] == "svm on tiny, H = 0.4"


def test_headline_figures_say_how_many_seeds_they_have(grid):
    gap = grid.copy(deep=True)
    gap["accuracy"] = grid.accuracy.astype(float)
    gap.accuracy[0, 1, -1] = np.nan
    rows = study_values(gap, "sweep.nc", 200_000)["headline"]["rows"]
    assert [row["cells"][0][3] for row in rows] == [1, 2]


def test_the_audit_is_that_of_the_run_alone(grid, study):
    expected = efhc.audit(one_run(grid, {"policy": 1, "seed": 0}))
    assert study["runs"]["1,0"]["audit"] == [[one.name, one.verdict, one.figure] for one in expected]
    assert study["runs"]["1,1"]["audit"] is None


def test_headline_figures_and_curves_are_means_with_their_intervals(grid, study):
    assert study["headline"]["columns"][-1] == "accuracy within time 20 (%)"
    accuracy = interval(100 * grid.accuracy.isel(evaluation=-1).mean("device"))
    for policy, row in enumerate(study["headline"]["rows"]):
        assert row["place"] == str(policy)
        assert row["cells"][0] == numbers([float(part[policy]) for part in accuracy])
    curve = study["curves"]["1"]
    every = interval(100 * grid.accuracy.isel(policy=1).mean("device"))
    assert curve["accuracy"]["mean"] == numbers(every.mean.values)
    assert curve["accuracy"]["high"] == numbers(every.high.values)
    time = grid.transmission_time.isel(policy=1).mean("seed").values
    np.testing.assert_allclose(curve["rate"]["mean"], time, rtol=1e-4)
    assert study["iterations"] == [0, 10, 20, 30, 40]


def test_a_file_without_an_audit_says_what_it_can(grid):
    study = study_values(grid.drop_vars(["fired", "adjacency"]), "sweep.nc", LARGE)
    shown, run = study["runs"]["0,1"], one_run(grid, {"policy": 0, "seed": 1})
    assert not study["audited"]
    assert shown["used"] is shown["use"] is shown["audit"] is None
    assert shown["links"] == activity_of(run).links.tolist(), "the network follows from the settings"
    assert shown["edges"] == [0, 10, 20, 30, 40]
    every_ten = run.fired.values.reshape(4, 10, 6).mean(1)
    np.testing.assert_allclose(shares(shown["fired"], (4, 6)), every_ten, atol=1e-5)
    assert "--audit" not in study["command"]


def test_long_runs_are_thinned_out_and_say_so(grid):
    study = study_values(grid, "sweep.nc", LARGE)
    assert study["notes"] == []
    whole = len(json.dumps(study))
    long = grid.isel(step=np.tile(np.arange(40), 200)).assign_coords(iteration=grid.iteration * 200)
    thin = study_values(long, "sweep.nc", 2 * whole)
    assert len(json.dumps(thin)) < 2 * whole
    shown = thin["runs"]["0,0"]
    length = shown["edges"]["length"]
    assert length > 1
    assert f"groups of {length} iterations" in thin["notes"][-1]
    assert not shown["exact"]
    frames = -(-8000 // length)
    fired = activity_of(one_run(long, {"policy": 0, "seed": 0})).fired
    found = shares(shown["fired"], (frames, 6))
    np.testing.assert_allclose(found[1], fired[length : 2 * length].mean(0), atol=1e-5)
    used = activity_of(one_run(long, {"policy": 0, "seed": 0})).used
    lit = bits(shown["used"], (frames, used.shape[1]))
    np.testing.assert_array_equal(lit[1], used[length : 2 * length].any(0))


def test_where_there_is_room_for_few_runs_the_others_are_means(grid):
    few = study_values(grid, "sweep.nc", 1)
    assert list(few["runs"]) == ["0,0"]
    assert any(note.startswith("1 of 4 runs") for note in few["notes"])
    assert len(few["curves"]) == 2


def test_many_evaluations_are_thinned_out(grid):
    many = grid.isel(evaluation=np.arange(1000) % 5)
    study = study_values(many, "sweep.nc", LARGE)
    assert len(study["iterations"]) == 150
    assert study["notes"][0] == "Curves show 150 of 1,000 evaluations."


def test_a_run_that_diverged_at_once_is_not_shown_alone(grid):
    broken = grid.copy(deep=True)
    for name in ("transmission_time", "accuracy", "consensus_error"):
        broken[name] = broken[name].where((broken.seed != 1) | (broken.policy != "rg"))
    study = study_values(broken, "sweep.nc", LARGE)
    assert "1,1" not in study["runs"]
    assert len(study["runs"]) == 3


@pytest.mark.parametrize(
    ("experiment", "axes"),
    [
        (BASE, {}),
        (BASE.replace(norm_order=float("inf"), dynamics="churn", absent_train=True, seed=7), {}),
        (BASE.replace(budgets=(1.5, 20.0), graph="star"), {"policy": ["efhc", "zt"], "seed": [4, 5, 6]}),
        (BASE.replace(dynamics="churn", absent_train=True), {"seed": [3, 1], "r": [5.0, 50.0]}),
    ],
)
def test_the_command_runs_the_same_again(experiment, axes):
    words = shlex.split(command(experiment, axes, audit=True))
    assert words.pop(0) == "efhc"
    parsed = parse(words)
    assert parsed.audit
    if not axes:
        assert parsed.experiment == experiment
    else:
        runs = (Grid.of(*plan).experiments for plan in (parsed.plan(), (experiment, axes)))
        again, before = ({run.to_json() for run in some} for some in runs)
        assert again == before


def test_nothing_in_the_values_can_leave_their_script():
    evil = "</script><script>alert(1)</script>&<!--"
    text = page(evil, {"claims": [], "studies": [{"name": evil}]})
    assert "alert(1)</script>" not in text
    assert text.count("</script>") == 2
    assert "&lt;/script&gt;" in text


def test_the_page_names_nothing_on_the_network():
    text = page("title", {"claims": [], "studies": []})
    assert set(re.findall(r"https?://[^\"' )]+", text)) <= {"http://www.w3.org/2000/svg"}
    assert "$" not in re.sub(r"\$\{", "", text), "every placeholder is filled"


def test_a_folder_of_figure_1_is_read_with_its_claims(grid, tmp_path):
    studies = ["lenet5-connectivity", "lenet5-curves", "svm-connectivity", "svm-curves"]
    for name in studies:
        efhc.save(grid.isel(seed=[0]), tmp_path / name / "sweep.nc")
    claim = {"classifier": "svm", "panel": "i", "statement": "s", "quantity": "q", "difference": 1.0}
    claim |= {"low": None, "high": None, "at_least": 0.0, "seeds": 2, "verdict": "holds"}
    (tmp_path / "claims.json").write_text(json.dumps([claim]))
    order = [path.parent.name for path in result_files([tmp_path])]
    assert order == ["svm-curves", "svm-connectivity", "lenet5-curves", "lenet5-connectivity"]
    values = embedded(write_report([tmp_path], tmp_path / "report.html"))
    assert values["claims"] == [claim]
    assert [study["name"] for study in values["studies"]] == [f"{name}/sweep.nc" for name in order]
    assert sorted(path.name for path in tmp_path.glob("*.*")) == ["claims.json", "report.html"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "FILE: give one or more netCDF files"),
        (["missing.nc"], "missing.nc: no such file"),
        (["empty"], "empty: no netCDF file in this folder"),
        (["text.nc"], "text.nc: cannot be read as netCDF"),
        (["sweep.nc", "--out", "report.pdf"], "out=report.pdf: give a file ending in .html"),
        (["sweep.nc", "--out", "text.nc/report.html"], "text.nc"),
    ],
)
def test_what_cannot_be_reported_is_explained(grid, tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    efhc.save(grid.isel(seed=[0], policy=[0]), "sweep.nc")
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.nc").write_text("not netCDF")
    assert main(["report", *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("efhc: error: ")
    assert message in error
    assert error.count("\n") == 1


def test_damaged_claims_are_named(grid, tmp_path, capsys):
    efhc.save(grid.isel(seed=[0], policy=[0]), tmp_path / "sweep.nc")
    (tmp_path / "claims.json").write_text("{")
    assert main(["report", str(tmp_path / "sweep.nc"), "--out", str(tmp_path / "report.html")]) == 2
    assert "claims.json: cannot be read" in capsys.readouterr().err
