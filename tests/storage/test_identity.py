"""A resumed sweep is the sweep that it says it is: parts of other work are refused."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import efhc_jax as efhc
from efhc_jax.cli import main
from efhc_jax.runs.simulation import _refilled
from efhc_jax.storage.identity import differences, owner
from small import SMALL

AXES = {"policy": ["efhc", "zt"], "seed": [0, 1, 2]}


class StopAfter:
    """Stop after so many chunks."""

    def __init__(self, chunks):
        self.left = chunks

    def __call__(self):
        self.left -= 1
        return self.left < 0


def stopped(folder, data, base=SMALL, chunks=3, **more):
    with pytest.raises(KeyboardInterrupt):
        efhc.sweep(
            base, data, out=folder, runs_at_once=2, should_stop=StopAfter(chunks), **(AXES | more)
        )


def test_a_batch_of_another_sweep_is_refused(tiny, tmp_path):
    """Without sweep.json, nothing but the batch itself says what it is of."""
    stopped(tmp_path, tiny, chunks=8)
    assert list((tmp_path / "batches").iterdir())
    (tmp_path / "sweep.json").unlink()
    with pytest.raises(efhc.DataError) as error:
        efhc.sweep(SMALL.replace(r=5.0), tiny, out=tmp_path, runs_at_once=2, **AXES)
    assert "is a batch of another sweep (r is 4000.0 there and 5.0 here)" in str(error.value)


def test_a_checkpoint_of_another_sweep_is_refused(tiny, tmp_path):
    stopped(tmp_path / "one", tiny)
    stopped(tmp_path / "other", tiny, base=SMALL.replace(r=5.0))
    (tmp_path / "other" / "checkpoint").rename(tmp_path / "gone")
    (tmp_path / "one" / "checkpoint").rename(tmp_path / "other" / "checkpoint")
    with pytest.raises(efhc.DataError, match="belongs to other work .r is 4000.0 there and 5.0 here"):
        efhc.sweep(SMALL.replace(r=5.0), tiny, out=tmp_path / "other", runs_at_once=2, **AXES)


def test_a_batch_under_another_number_is_refused(tiny, tmp_path):
    stopped(tmp_path, tiny, chunks=8)
    (batch,) = (tmp_path / "batches").iterdir()
    batch.rename(batch.with_name("00001.npz"))
    with pytest.raises(efhc.DataError, match="the number of the batch is 0 there and 1 here"):
        efhc.sweep(SMALL, tiny, out=tmp_path, runs_at_once=2, **AXES)


def test_other_data_under_the_same_name_are_refused(tiny, tmp_path):
    stopped(tmp_path, tiny)
    other = tiny._replace(train_images=255 - tiny.train_images)
    with pytest.raises(efhc.ExperimentError, match="contains another sweep .the data are different"):
        efhc.sweep(SMALL, other, out=tmp_path, runs_at_once=2, **AXES)


def test_the_result_of_another_sweep_is_refused(tiny, tmp_path):
    efhc.sweep(SMALL, tiny, out=tmp_path / "one", **AXES)
    efhc.sweep(SMALL.replace(r=5.0), tiny, out=tmp_path / "other", **AXES)
    (tmp_path / "one" / "sweep.nc").replace(tmp_path / "other" / "sweep.nc")
    with pytest.raises(efhc.DataError, match="of another sweep .r is 4000.0 there and 5.0 here"):
        efhc.sweep(SMALL.replace(r=5.0), tiny, out=tmp_path / "other", **AXES)


def test_a_policy_whose_code_changed_is_refused(tiny, tmp_path, monkeypatch):
    def always(situation):
        return situation.deviation >= 0

    def never(situation):
        return situation.deviation < 0

    mine = {"policy": ["mine"], "seed": range(4)}
    monkeypatch.setitem(efhc.POLICIES, "mine", efhc.Policy(always))
    stopped(tmp_path, tiny, chunks=8, **mine)
    monkeypatch.setitem(efhc.POLICIES, "mine", efhc.Policy(never))
    with pytest.raises(efhc.ExperimentError, match="the code of the policy 'mine' is different"):
        efhc.sweep(SMALL, tiny, out=tmp_path, runs_at_once=2, **mine)
    monkeypatch.setitem(efhc.POLICIES, "mine", efhc.Policy(always))
    assert (
        efhc.sweep(SMALL, tiny, out=tmp_path, runs_at_once=2, **mine).broadcasts[..., -1, :] > 0
    ).all()


def test_the_command_and_python_resume_each_other(tmp_path, capsys):
    base = efhc.Experiment(dataset="synthetic", iterations=20, eval_every=10)
    stopped(tmp_path, None, base=base)
    words = (
        "--dataset synthetic --iterations 20 --eval-every 10 --policy efhc zt --seeds 3 --runs-at-once 2"
    )
    assert main(["sweep", *words.split(), "--out", str(tmp_path)]) == 0
    expected = efhc.sweep(base, runs_at_once=2, **AXES)
    assert efhc.load(tmp_path / "sweep.nc").equals(expected)


@pytest.fixture
def graph_file(tmp_path):
    file = tmp_path / "links.csv"
    file.write_text("\n".join(f"{i},{(i + 1) % 5}" for i in range(5)))
    return file


def test_other_contents_of_a_graph_file_are_refused(tiny, tmp_path, graph_file):
    base = SMALL.replace(graph="file", graph_file=str(graph_file))
    stopped(tmp_path / "out", tiny, base=base)
    graph_file.write_text("\n".join(f"0,{i}" for i in range(1, 5)))
    with pytest.raises(efhc.ExperimentError, match="the contents of .*links.csv are different"):
        efhc.sweep(base, tiny, out=tmp_path / "out", runs_at_once=2, **AXES)


def test_a_graph_file_is_opened_for_verification_only_when_it_is_given(tiny, tmp_path, graph_file):
    run = efhc.simulate(SMALL.replace(graph="file", graph_file=str(graph_file)), tiny)
    assert list(json.loads(run.attrs["files"])) == [str(graph_file)]
    with pytest.raises(
        efhc.ExperimentError, match="is not opened automatically; give it as --graph-file"
    ):
        efhc.verify(run, tiny)
    assert efhc.verify(run, tiny, graph_file=graph_file).agrees
    moved = graph_file.rename(tmp_path / "elsewhere.csv")
    assert efhc.verify(run, tiny, graph_file=moved).agrees
    moved.write_text("\n".join(f"0,{i}" for i in range(1, 5)))
    with pytest.raises(efhc.DataError, match="its contents are not those that the result was run on"):
        efhc.verify(run, tiny, graph_file=moved)
    plain = efhc.simulate(SMALL, tiny)
    with pytest.raises(efhc.ExperimentError, match="was not run on a graph file"):
        efhc.verify(plain, tiny, graph_file=moved)


ON_CORES = """
import sys, warnings
import jax
jax.config.update("jax_num_cpu_devices", int(sys.argv[1]))
import efhc_jax as efhc
base = efhc.Experiment(dataset="synthetic", iterations=20, eval_every=10, budgets=[0.5])
stop = iter([False] * 3 + [True] * 99) if sys.argv[3] == "stop" else None
warnings.simplefilter("always")
try:
    efhc.sweep(base, out=sys.argv[2], policy=["efhc", "zt"], seed=range(3), progress=False,
               should_stop=(lambda: next(stop)) if stop else (lambda: False), checkpoint_seconds=0.0)
except KeyboardInterrupt:
    print("stopped")
"""


@pytest.mark.parametrize(("first", "then"), [(1, 2), (2, 3)])
def test_a_sweep_resumes_on_other_numbers_of_cores(first, then, tmp_path):
    def on(cores, folder, stop=""):
        words = [sys.executable, "-c", ON_CORES, str(cores), str(folder), stop]
        done = subprocess.run(
            words, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": "."}
        )
        assert done.returncode == 0, done.stderr
        return done

    assert on(first, tmp_path / "both", "stop").stdout == "stopped\n"
    resumed = on(then, tmp_path / "both")
    assert "this sweep was started on" in resumed.stderr
    on(first, tmp_path / "one")
    both, one = (efhc.load(tmp_path / name / "sweep.nc") for name in ("both", "one"))
    assert both.attrs["begun_on"] == first
    for name in one:
        np.testing.assert_allclose(both[name], one[name], rtol=1e-5, atol=1e-6, err_msg=name)


def test_a_batch_is_filled_up_anew():
    saved = {"a": np.arange(4)[:, None], "deep": {"b": np.arange(4)}, "position": np.array(7)}
    found = _refilled(saved, distinct=3, runs=6)
    assert found["a"].ravel().tolist() == found["deep"]["b"].tolist() == [0, 1, 2, 2, 2, 2]
    assert _refilled(saved, distinct=2, runs=2)["deep"]["b"].tolist() == [0, 1]
    assert found["position"] == 7


def test_what_was_not_noted_cannot_differ():
    now = owner([efhc.Experiment()], {"tiny": "12"}, audit=False, bits=32, axes={})
    assert differences({"experiment": {}, "bits": 32, "data": None}, now) == []
    assert differences({"experiment": {}, "bits": 32, "data": "12"}, now) == []
    assert differences({"experiment": {}, "bits": 32, "data": "13"}, now) == ["the data are different"]


SHORT = ["--dataset", "synthetic", "--iterations", "4", "--eval-every", "4", "--devices", "4"]


@pytest.mark.parametrize(
    ("rich", "name"), [("--audit", "recorded for an audit"), ("--trace", "with a trace")]
)
def test_a_run_is_not_replaced_by_one_that_holds_less(rich, name, tmp_path, capsys):
    out = ["--out", str(tmp_path)]
    assert main(["run", *SHORT, rich, *out]) == 0
    (stored,) = tmp_path.glob("*.nc")
    before = stored.read_bytes()
    assert main(["run", *SHORT, *out]) == 2
    assert (
        f"contains this run {name}, which would be lost; give {rich} as well" in capsys.readouterr().err
    )
    assert stored.read_bytes() == before
    assert main(["run", *SHORT, rich, *out]) == 0


def test_more_may_replace_less(tmp_path):
    for more in ([], ["--audit"], ["--trace"]):
        assert main(["run", *SHORT, *more, "--out", str(tmp_path)]) == 0


@pytest.mark.parametrize(
    "change",
    [
        {"axes": 3},
        {"axes": None},
        {"experiment": []},
        {"experiment": "x"},
        {"batch": "two"},
        {"batch": 0},
        {"batch": True},
        {"format": None},
        {"format": "1"},
        {"versions": 3, "data": 7},
        {"bits": "many"},
    ],
)
def test_an_edited_manifest_is_refused_in_one_line(change, tmp_path, tiny):
    stopped(tmp_path, tiny)
    manifest = json.loads((tmp_path / "sweep.json").read_text())
    (tmp_path / "sweep.json").write_text(json.dumps(manifest | change))
    with pytest.raises(efhc.EfhcError) as error:
        efhc.sweep(SMALL, tiny, out=tmp_path, runs_at_once=2, **AXES)
    assert str(tmp_path) in str(error.value)
