"""The values that a report shows, and the page that holds them."""

import base64
import json
import math
import os
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

import efhc_jax as efhc
from efhc_jax.cli import main, parse
from efhc_jax.experiment.effects import settings_in_effect
from efhc_jax.network.topologies import GRAPHS, NetworkSettings, draw_links
from efhc_jax.report.command import command
from efhc_jax.report.packing import numbers, packed_bits, packed_shares
from efhc_jax.report.page import page, result_files, write_report
from efhc_jax.report.studies import study_values
from efhc_jax.report.thinning import Limits, drawn_part
from efhc_jax.results.activity import activity_of, one_run
from efhc_jax.results.statistics import interval
from efhc_jax.runs.grid import Grid, check_grid
from odd_results import CLAIM, EVIL, evil_file, named_file
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
    """The values in a page, which are strict JSON."""
    text = path.read_text(encoding="utf-8")
    found = re.search(r'id="values">(.*?)</script>', text, re.DOTALL).group(1)
    return json.loads(found, parse_constant=pytest.fail)


def failure(capsys, *words):
    """The one line with which `efhc report` fails."""
    capsys.readouterr()
    assert main(["report", *map(str, words)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("efhc: error: ")
    assert error.count("\n") == 1
    return error.removesuffix("\n")


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
        (
            BASE.replace(
                norm_order=float("inf"), dynamics=efhc.dynamics.Churn(train_while_absent=True), seed=7
            ),
            {},
        ),
        (BASE.replace(budgets=(1.5, 20.0), graph="star"), {"policy": ["efhc", "zt"], "seed": [4, 5, 6]}),
        (
            BASE.replace(dynamics=efhc.dynamics.Churn(train_while_absent=True)),
            {"seed": [3, 1], "r": [5.0, 50.0]},
        ),
        (BASE.replace(r=5.0).replace(policy="zt"), {}),
        (BASE.replace(r=5.0), {"policy": ["zt", "efhc"]}),
        (BASE.replace(connectivity=0.5, placement=0.5), {"connectivity": [0.9, 0.5]}),
        (BASE.replace(connectivity=0.6, placement=0.3), {"connectivity": [0.6, 0.9]}),
        (BASE.replace(graph="file", graph_file="a.npy"), {"graph_file": ["a.npy", "b.npy"]}),
        (BASE.replace(graph="file", graph_file="a.npy"), {"graph": ["file", "ring"]}),
    ],
)
def test_the_command_runs_the_same_again(experiment, axes):
    words = shlex.split(command(experiment, axes, "audit"))
    assert words.pop(0) == "efhc"
    parsed = parse(words)
    assert parsed.audit
    if not axes:
        assert settings_in_effect(parsed.experiment) == settings_in_effect(experiment)
    else:
        grid = Grid.of(*parsed.plan(), parsed.nested)
        check_grid(grid, given=list(grid.experiment.to_dict()))
        grids = (grid, Grid.of(experiment, axes))
        again, before = ([settings_in_effect(run) for run in each.experiments] for each in grids)
        assert all(one in before for one in again)
        assert len(again) == len(before)


@pytest.mark.parametrize("record", ["", "audit", "trace"])
def test_the_command_records_as_much(record):
    words = shlex.split(command(BASE, {}, record))[1:]
    parsed = parse(words)
    assert (parsed.audit, parsed.trace) == (record == "audit", record == "trace")


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
    (tmp_path / "claims.json").write_text(json.dumps([CLAIM]))
    order = [path.parent.name for path in result_files([tmp_path])]
    assert order == ["svm-curves", "svm-connectivity", "lenet5-curves", "lenet5-connectivity"]
    values = embedded(write_report([tmp_path], tmp_path / "report.html"))
    assert values["claims"] == [CLAIM]
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


def small_file(grid, path):
    """One run of the sweep as a file."""
    return efhc.save(grid.isel(seed=[0], policy=[0]), path)


@pytest.mark.parametrize("name", ["svm-curves/sweep.nc", "svm-curves.nc"])
@pytest.mark.parametrize("as_folder", [False, True])
def test_sweeps_of_figure_1_have_its_claims(grid, tmp_path, name, as_folder):
    path = small_file(grid, tmp_path / name)
    (tmp_path / "claims.json").write_text(json.dumps([CLAIM]))
    page = write_report([tmp_path if as_folder else path], tmp_path / "report.html")
    assert embedded(page)["claims"] == [CLAIM]
    assert "<title>Figure 1" in page.read_text()


@pytest.mark.parametrize("name", ["sweep.nc", "mine/sweep.nc", "mine/svm-curves/old/sweep.nc"])
def test_other_results_do_not_take_the_claims_around_them(grid, tmp_path, name):
    path = small_file(grid, tmp_path / name)
    (tmp_path / "claims.json").write_text(json.dumps([CLAIM]))
    for folder in (path, path.parent):
        page = write_report([folder], tmp_path / "report.html")
        assert embedded(page)["claims"] == []
        assert "Figure 1" not in re.search("<title>.*</title>", page.read_text()).group()


def test_figure_1_next_to_another_result_is_not_all_of_the_page(grid, tmp_path):
    files = [small_file(grid, tmp_path / name) for name in ("svm-curves/sweep.nc", "mine.nc")]
    (tmp_path / "claims.json").write_text(json.dumps([CLAIM]))
    page = write_report(files, tmp_path / "report.html")
    assert embedded(page)["claims"] == [CLAIM]
    assert "<title>2 results</title>" in page.read_text()


def test_a_sweep_of_figure_1_is_known_in_its_own_folder(grid, tmp_path, monkeypatch):
    small_file(grid, tmp_path / "svm-curves" / "sweep.nc")
    (tmp_path / "claims.json").write_text(json.dumps([CLAIM]))
    monkeypatch.chdir(tmp_path / "svm-curves")
    assert embedded(write_report(["sweep.nc"], "report.html"))["claims"] == [CLAIM]


@pytest.mark.parametrize("other", [{"mine": 1}, ["mine"], [{"claim": "mine"}], 5])
def test_a_file_of_that_name_that_holds_no_claims_is_left_alone(grid, tmp_path, other):
    path = small_file(grid, tmp_path / "svm-curves.nc")
    (tmp_path / "claims.json").write_text(json.dumps(other))
    assert embedded(write_report([path], tmp_path / "report.html"))["claims"] == []


def test_the_committed_figure_1_is_shown_with_its_claims(tmp_path):
    folder = Path(__file__).parents[2] / "docs" / "figure1"
    values = embedded(write_report([folder], tmp_path / "report.html"))
    assert values["claims"] == json.loads((folder / "claims.json").read_text())
    assert len(values["studies"]) == 4


def test_claims_without_a_value_are_shown(grid, tmp_path):
    path = small_file(grid, tmp_path / "svm-curves.nc")
    claim = CLAIM | {"difference": math.nan, "low": -math.inf, "high": math.inf}
    (tmp_path / "claims.json").write_text(json.dumps([claim]))
    (shown,) = embedded(write_report([path], tmp_path / "report.html"))["claims"]
    assert (shown["difference"], shown["low"], shown["high"]) == (None, "-inf", "inf")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "claims.json: cannot be read"),
        ("[" * 100_000, "claims.json: cannot be read"),
        (
            json.dumps([CLAIM, CLAIM | {"quantity": None}]),
            "damaged (the quantity is not text of claim 2)",
        ),
        (json.dumps([CLAIM | {"low": "x"}]), "damaged (the low is not a number of claim 1)"),
    ],
)
def test_damaged_claims_are_named(grid, tmp_path, capsys, text, message):
    path = small_file(grid, tmp_path / "svm-curves.nc")
    (tmp_path / "claims.json").write_text(text)
    assert message in failure(capsys, path, "--out", tmp_path / "report.html")


@pytest.mark.parametrize("axes", [{"r": [50.0, math.inf]}, {"norm_order": [2.0, math.inf]}])
def test_an_infinite_value_of_an_axis_is_a_word(tmp_path, axes):
    grid = efhc.sweep(BASE, **axes, progress=False)
    values = embedded(write_report([efhc.save(grid, tmp_path / "a.nc")], tmp_path / "report.html"))
    (axis,) = values["studies"][0]["axes"]
    assert axis["values"][1] == axis["labels"][1] == "inf"
    assert list(values["studies"][0]["runs"]) == ["0", "1"]


def test_seeds_may_be_stored_as_floats(grid, tmp_path, capsys):
    floats = grid.assign_coords(seed=grid.seed.astype(float))
    out = tmp_path / "report.html"
    (study,) = embedded(write_report([efhc.save(floats, tmp_path / "a.nc")], out))["studies"]
    assert study["axes"][1]["values"] == [0, 1]
    assert "--seeds 2" in study["command"]
    for wrong in (0.5, math.inf):
        path = efhc.save(grid.assign_coords(seed=[0.0, wrong]), tmp_path / "b.nc")
        error = failure(capsys, path, "--out", out)
        assert f"{path}: is damaged (its axis seed has a value that is not a whole number)" in error


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("experiment", '{"r": NaN, "devices": 6, "iterations": 40}', "r=nan: out of range"),
        ("policies", '{"efhc": {}, "rg": 5}', "is damaged (KeyError: 'uses_new_links')"),
        ("policies", '{"efhc": 5}', "is damaged (TypeError: "),
    ],
)
def test_a_damaged_result_is_named(grid, tmp_path, capsys, name, text, message):
    path = efhc.save(grid.assign_attrs({name: text}), tmp_path / "a.nc")
    assert f"{path}: {message}" in failure(capsys, path, "--out", tmp_path / "report.html")


@pytest.mark.parametrize("graph", sorted(GRAPHS.keys() - {"file"}))
def test_a_network_is_drawn_in_part_where_it_is_large(graph):
    links = draw_links(graph, NetworkSettings(90, 0.4, 0.4), np.random.default_rng(0))
    limits = Limits(devices=40, links=60)
    part = drawn_part(links, 90, limits)
    assert len(part.devices) == 40
    assert len(part.links) <= limits.links
    np.testing.assert_array_equal(part.devices[part.links], links[part.chosen])
    assert 0 in part.devices
    assert (np.diff(part.devices) > 0).all()
    adjacency = np.zeros((40, 40))
    adjacency[tuple(part.links.T)] = 1
    assert connected_components(adjacency, directed=False)[0] == 1
    whole = drawn_part(links, 90, Limits(90, len(links)))
    np.testing.assert_array_equal(whole.links, links)


def test_a_network_that_falls_apart_is_drawn_in_part():
    links = np.array([[1, 2], [3, 4]])
    part = drawn_part(links, 6, Limits(devices=4, links=5))
    assert part.devices.tolist() == [0, 1, 2, 3]
    assert part.links.tolist() == [[1, 2]]
    nothing = drawn_part(np.zeros((0, 2), int), 6, Limits(devices=4, links=5))
    assert nothing.devices.tolist() == [0, 1, 2, 3]


@pytest.fixture(scope="module")
def large():
    """A run of 320 devices, each linked with most others."""
    experiment = BASE.replace(devices=320, split="iid", connectivity=0.9, iterations=12, eval_every=4)
    return efhc.simulate(experiment, audit=True, progress=False)


def test_a_large_network_is_drawn_in_part_and_counted_whole(large):
    study = study_values(large, "run.nc", 2_500_000)
    shown, links = study["runs"][""], int(large.degree.sum()) // 2
    assert len(shown["weak"]) == len(shown["ids"]) == len(shown["bandwidth"]) == 300
    assert len(shown["links"]) == len(shown["use"]) == 5_000 < links
    assert shown["whole"]["devices"] == 320
    assert shown["whole"]["links"] == links
    assert shown["whole"]["fired"] == large.fired.sum("device").values.tolist()
    assert shown["whole"]["used"] == large.links_used.values.tolist()
    fired = large.fired.values[:, shown["ids"]]
    np.testing.assert_array_equal(bits(shown["fired"], (12, 300)), fired)
    assert f"300 of 320 devices and 5,000 of {links:,} links" in study["notes"][0]
    assert all(len(figure) < 500 for _, _, figure in shown["audit"])


@pytest.mark.parametrize("room", [60_000, 250_000])
@pytest.mark.parametrize("audited", [False, True])
def test_a_large_network_keeps_to_its_room(large, room, audited):
    run = large if audited else large.drop_vars(["fired", "adjacency"])
    values = study_values(run, "run.nc", room)
    assert values["runs"]
    assert len(json.dumps(values)) <= room


def test_the_largest_network_of_a_sweep_keeps_to_its_room():
    base = BASE.replace(split="iid", iterations=12, eval_every=4)
    grid = efhc.sweep(base, devices=[4, 200], seed=[0, 1], audit=True, progress=False)
    values = study_values(grid, "sweep.nc", 250_000)
    assert len(json.dumps(values)) <= 250_000


def test_many_evaluations_and_settings_keep_to_their_room(grid):
    many = grid.isel(evaluation=np.arange(2_000) % 5).drop_vars(["fired", "adjacency"])
    times = np.arange(2_000)
    many = many.isel(step=np.arange(2_000) % 40).assign_coords(iteration=("evaluation", times))
    many["broadcasts"] = many.broadcasts.copy(
        data=np.broadcast_to(times[:, None], many.broadcasts.shape)
    )
    many = many.isel(policy=[0], drop=False)
    values = study_values(many, "sweep.nc", 80_000)
    assert len(json.dumps(values)) <= 80_000
    assert re.search(r"between \d+ of 2,000 evaluations", " ".join(values["notes"]))
    shown = values["runs"]["0,0"]
    np.testing.assert_allclose(shares(shown["fired"], (len(shown["edges"]) - 1, 6)), 1, atol=1e-5)
    wide = many.isel(policy=np.zeros(60, int), seed=[0]).assign_coords(
        policy=[f"p{i}" for i in range(60)]
    )
    assert len(json.dumps(study_values(wide, "sweep.nc", 250_000))) <= 250_000


@pytest.mark.parametrize("more", [{"graph": "file"}, {"dynamics": "trace"}])
def test_a_file_that_a_result_names_is_never_opened(grid, tmp_path, more):
    os.mkfifo(tmp_path / "pipe")  # who opens it waits for ever
    np.save(tmp_path / "graph.npy", np.ones((6, 6)) - np.eye(6))
    run = one_run(grid, {"policy": 0, "seed": 0})
    for name in ("pipe", "graph.npy", "missing.csv"):
        stored = named_file(run, tmp_path / name, **more)
        plain = study_values(stored.drop_vars(["fired", "adjacency"]), "run.nc", LARGE)["runs"][""]
        assert plain["links"] == []
        assert plain["places"] is None
        audited = study_values(stored, "run.nc", LARGE)["runs"][""]
        assert audited["links"] == activity_of(run).links.tolist()
        assert audited["places"] == 0


def test_text_of_a_result_reaches_the_page_escaped(grid, tmp_path, capsys):
    path = evil_file(grid, tmp_path / "a.nc")
    out = tmp_path / "report.html"
    assert main(["report", str(path), "--out", str(out)]) == 0
    printed = capsys.readouterr()
    assert (printed.out + printed.err).replace("\n", "").isprintable()
    text = out.read_text(encoding="utf-8")
    assert text.replace("\n", "").isprintable()
    assert "<img" not in text
    assert text.count("</script>") == 2
    values = json.dumps(embedded(out), ensure_ascii=False).replace("\\n", "")
    assert values.isprintable()
    assert "\\\\x1b[31m[bold]red[/bold]\\\\x07\\\\u202e<img" in values


@pytest.mark.parametrize(
    "change",
    [
        lambda run: run.assign_attrs(axes=json.dumps([EVIL])),
        lambda run: named_file(run, "", **{EVIL: 1}),
        lambda run: run.assign_attrs(policies=json.dumps({"efhc": EVIL})),
    ],
)
def test_errors_hold_no_control_characters(grid, tmp_path, capsys, change):
    path = efhc.save(change(one_run(grid, {"policy": 0, "seed": 0})), tmp_path / "a\x1b[31m.nc")
    assert failure(capsys, path, "--out", tmp_path / "report.html").isprintable()


def test_names_of_files_are_printed_escaped(grid, tmp_path, capsys):
    path = small_file(grid, tmp_path / "a\x1b[31m.nc")
    assert failure(capsys, path, "--out", tmp_path / "\x1bmissing\x07.nc" / "x.pdf").isprintable()
    assert failure(capsys, path, "--out", path / "\x1b.html").isprintable()
    assert main(["report", str(path), "--out", str(tmp_path / "\x1b[32m\n.html")]) == 0
    assert capsys.readouterr().out.removesuffix("\n").isprintable()
