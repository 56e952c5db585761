"""The command line: what it writes, and one clear message for everything that a user can mend."""

import contextlib
import gzip
import importlib.metadata
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import efhc_jax as efhc
from efhc_jax.cli import main, parse
from efhc_jax.cli.run import summary, summary_table
from efhc_jax.data import fashion_mnist
from efhc_jax.engine.program import advance
from efhc_jax.experiment.families import FAMILIES, family_in, full_names, users_of
from efhc_jax.runs.grid import Grid, check_grid

TINY = ["--dataset", "synthetic", "--iterations", "20", "--eval-every", "10"]
EXPERIMENT = efhc.Experiment(dataset="synthetic", iterations=20, eval_every=10)


class Done(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    """Run a command in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def run(*words):
        try:
            code = main([str(word) for word in words])
        except SystemExit as stop:
            code = stop.code
        out, err = capsys.readouterr()
        lines = err.splitlines(keepends=True)  # the tests override some flags of a common start
        return Done(code, out, "".join(line for line in lines if " is given twice; " not in line))

    return run


def assert_refused(done, *parts):
    """Exit code 2 and one line that holds all the parts."""
    assert done.code == 2
    assert done.err.startswith("efhc: error: ")
    assert done.err.count("\n") == 1
    for part in parts:
        assert str(part) in done.err
    assert "Traceback" not in done.out + done.err


def entries(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_run_is_stored_drawn_and_summed_up(call, tmp_path):
    done = call("run", *TINY, "--out", "results")
    assert (done.code, done.err) == (0, "")
    folder = tmp_path / "results"
    stems = {path.stem for path in folder.iterdir()}
    assert len(stems) == 1
    assert {path.suffix for path in folder.iterdir()} == {".nc", ".png", ".toml"}
    stem = stems.pop()
    assert stem.startswith("efhc-svm-synthetic-")
    run = efhc.load(folder / f"{stem}.nc")
    assert efhc.Experiment.from_json(run.attrs["experiment"]) == EXPERIMENT
    assert run.equals(efhc.simulate(EXPERIMENT))
    assert efhc.Experiment.from_toml(folder / f"{stem}.toml") == EXPERIMENT
    assert (folder / f"{stem}.png").read_bytes().startswith(b"\x89PNG")
    for suffix in ("nc", "png", "toml"):
        assert f"wrote results/{stem}.{suffix}\n" in done.out
    assert f"{float(run.accuracy[-1].mean()):.2%}" in done.out
    assert f"{float(run.transmission_time.sum()):,.1f}" in done.out


def test_the_summary_is_what_the_run_gave():
    run = efhc.simulate(EXPERIMENT)
    lines = dict(summary(run))
    assert lines["iterations"] == "20"
    assert lines["accuracy, mean over devices"] == f"{float(run.accuracy[-1].mean()):.2%}"
    best, worst = float(run.accuracy[-1].max()), float(run.accuracy[-1].min())
    assert lines["accuracy, worst and best device"] == f"{worst:.2%} to {best:.2%}"
    rate = float(run.broadcasts[-1].mean()) / 20
    assert lines["broadcasts per device per iteration"] == f"{rate:.3f}"
    total = float(run.transmission_time.sum())
    assert lines["transmission time per iteration"] == f"{total / 20:.4f}"


def test_flags_overrule_the_config(call, tmp_path):
    written = EXPERIMENT.replace(policy="gt", r=7.0, seed=3, weak_fraction=0.2)
    (tmp_path / "my.toml").write_text(written.to_toml())
    done = call("run", "--config", "my.toml", "--r", "9", "--out", "results")
    assert done.code == 0
    (found,) = (tmp_path / "results").glob("*.toml")
    assert efhc.Experiment.from_toml(found) == written.replace(r=9.0)
    done = call("run", "--seed", "4", "--config=my.toml", "--out", "others")
    assert done.code == 0
    (found,) = (tmp_path / "others").glob("*.toml")
    assert efhc.Experiment.from_toml(found) == written.replace(seed=4)


def test_what_was_written_runs_again_to_the_same_bits(call, tmp_path):
    call("run", *TINY, "--policy", "rg", "--out", "first")
    (config,) = (tmp_path / "first").glob("*.toml")
    call("run", "--config", config, "--out", "second")
    first, second = (efhc.load(*(tmp_path / name).glob("*.nc")) for name in ("first", "second"))
    assert first.equals(second)


def test_a_folder_may_have_any_name(call, tmp_path):
    done = call("run", *TINY, "--out", "with [bold] and blanks")
    assert done.code == 0
    assert "wrote with [bold] and blanks/efhc-svm-synthetic-" in done.out


def test_a_trace_is_stored_too(call, tmp_path):
    assert call("run", *TINY, "--trace", "--out", "results").code == 0
    (path,) = (tmp_path / "results").glob("*.nc")
    assert efhc.load(path).sizes["instant"] == 21


OUT_OF_RANGE = {
    "devices": "0",
    "labels_per_device": "0",
    "dirichlet_alpha": "0",
    "batch_size": "-1",
    "iterations": "0",
    "eval_every": "0",
    "early_evaluations": "-1",
    "connectivity": "1.6",
    "placement": "-0.1",
    "r": "nan",
    "weak_fraction": "1",
    "mean_bandwidth": "inf",
    "weak_bandwidth": "0",
    "norm_order": "0.5",
    "learning_rate": "-1",
    "learning_rate_schedule.offset": "0",
    "learning_rate_schedule.exponent": "-0.5",
    "budgets": "0",
    "seed": "-1",
    "policy.rate": "0",
    "policy.gain": "1.5",
    "graph.neighbors": "1",
    "graph.links": "0",
    "dynamics.up_probability": "1.5",
    "dynamics.failure": "-0.1",
    "dynamics.repair": "2",
    "dynamics.period": "0",
    "dynamics.speed": "-1",
    "dynamics.leave_probability": "7",
    "dynamics.return_probability": "1.01",
    "learning_rate_schedule.final": "-1",
    "threshold_schedule.offset": "0",
    "threshold_schedule.exponent": "-0.5",
    "threshold_schedule.final": "2",
    "local_steps": "0",
    "method.ratio": "0",
    "method.levels": "0",
    "method.gamma": "1.5",
    "method.beta": "1",
    "method.mu": "0",
    "optimizer.momentum": "1",
    "optimizer.b1": "1",
    "optimizer.b2": "-0.1",
    "optimizer.eps": "0",
    "optimizer.weight_decay": "-1",
    "optimizer.clip": "0",
    "participation.redrawn": "-1",
}
# Texts, and numbers whose range depends on one of them.
OTHERS = {
    *("dynamics.train_while_absent", "allow_disconnected", "graph_file", "method.compressor"),
    *(f"participation.{name}" for name in ("steps", "gradients", "gradients_a", "gradients_b")),
    *(f"participation.{name}" for name in ("links", "links_a", "links_b")),
}


def flag(field):
    return "--" + field.replace("_", "-")


def test_every_number_is_tried_out_of_range():
    known = {*efhc.Experiment.defaults(), *full_names()}
    assert set(OUT_OF_RANGE) | set(FAMILIES) | OTHERS == known


def chosen(field):
    """The flags that choose a member which has this parameter."""
    setting, own = family_in(field)
    return [flag(setting), next(iter(users_of(setting, own)))] if setting else []


@pytest.mark.parametrize("command", ["run", "sweep"])
@pytest.mark.parametrize("field", OUT_OF_RANGE)
def test_a_number_out_of_range_is_named(call, tmp_path, command, field):
    done = call(command, *chosen(field), flag(field), OUT_OF_RANGE[field], "--out", "results")
    assert_refused(done, f"efhc: error: {field}=", "give a")
    assert entries(tmp_path) == []


@pytest.mark.parametrize("command", ["run", "sweep"])
@pytest.mark.parametrize("field", OUT_OF_RANGE)
def test_a_number_of_the_wrong_type_is_named(call, tmp_path, command, field):
    done = call(command, *chosen(field), flag(field), "many", "--out", "results")
    assert done.code == 2
    assert field in done.err or flag(field) in done.err
    assert "many" in done.err
    assert "Traceback" not in done.err
    assert entries(tmp_path) == []


@pytest.mark.parametrize("field", FAMILIES)
def test_an_unknown_word_is_named_with_the_known_ones(call, tmp_path, field):
    done = call("run", flag(field), "nonsense", "--out", "results")
    assert_refused(done, f"efhc: error: {field}='nonsense'", *FAMILIES[field].names)
    assert entries(tmp_path) == []


def test_a_half_device_is_refused(call):
    done = call("run", "--devices", "2.5")
    assert done.code == 2
    assert "--devices" in done.err


@pytest.mark.parametrize("words", [["rnu"], ["run", "--polcy", "zt"], ["sweep", "--polcy", "zt"]])
def test_unknown_commands_and_flags(call, tmp_path, words):
    done = call(*words)
    assert done.code == 2
    assert "Traceback" not in done.err
    assert done.err.strip()
    assert entries(tmp_path) == []


@pytest.mark.parametrize("command", ["run", "sweep"])
@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("polcy = 'zt'", ["polcy", "did you mean 'policy'"]),
        ("r = -3", ["r=-3", "give a number of 0 or more"]),
        ("devices = 'ten'", ["devices='ten'", "give a whole number"]),
        ("r = = 3", ["not valid TOML"]),
        ("[svm]\nr = 3", ["svm.r: no such field"]),
    ],
)
def test_a_config_with_a_mistake(call, tmp_path, command, content, parts):
    (tmp_path / "bad.toml").write_text(content)
    done = call(command, "--config", "bad.toml", "--out", "results")
    assert_refused(done, "config=bad.toml: ", *parts)
    assert entries(tmp_path) == ["bad.toml"]


@pytest.mark.parametrize("command", ["run", "sweep"])
@pytest.mark.parametrize("name", ["none.toml", "."])
def test_a_config_that_cannot_be_read(call, tmp_path, command, name):
    done = call(command, "--config", name, "--out", "results")
    assert_refused(done, f"config={name}: cannot be read")
    assert entries(tmp_path) == []


@pytest.mark.parametrize("command", ["run", "sweep"])
@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--labels-per-device", "11"], ["labels_per_device=11", "10 labels", "give 1 to 10"]),
        (["--batch-size", "3000"], ["batch_size=3000", "200 samples", "try a smaller batch_size"]),
        (["--devices", "40", "--split", "iid", "--batch-size", "51"], ["batch_size=51", "50 samples"]),
        (["--connectivity", "0.01"], ["connectivity=0.01", "no connected graph", "try 0."]),
        (["--weak_fraction", "0.99"], ["weak_fraction=0.99", "try 0.9 or less"]),
        (["--placement", "0.5"], ["placement=0.5", "connectivity=0.4"]),
        (["--data-dir", "nowhere"], ["data_dir='nowhere'", "leave data_dir out"]),
    ],
)
def test_settings_that_do_not_fit_together(call, tmp_path, monkeypatch, command, words, parts):
    monkeypatch.setattr("efhc_jax.network.geometry.MAX_DRAWS", 1000)
    done = call(command, *TINY, *words, "--out", "results")
    assert_refused(done, *parts)
    assert entries(tmp_path) == []


def test_a_sweep_that_was_refused_does_not_stand_in_the_way(call, tmp_path):
    words = ["sweep", *TINY, "--seeds", "8", "--budgets", "10", "30", "--out", "results"]
    assert call(*words, "--labels-per-device", "11").code == 2
    assert call(*words).code == 0


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_a_data_folder_that_is_not_there(call, tmp_path, command):
    done = call(command, "--dataset", "fashion_mnist", "--data-dir", "nowhere", "--out", "results")
    assert_refused(done, "data_dir='nowhere'", "train-images-idx3-ubyte", "give the directory")
    assert entries(tmp_path) == []


def test_a_truncated_data_file_is_named(call, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for file in fashion_mnist.FILES:
        (folder / f"{file.name}.gz").write_bytes(gzip.compress(bytes(10_000)))
    cut = folder / "train-images-idx3-ubyte.gz"
    cut.write_bytes(cut.read_bytes()[:-10])
    done = call("run", "--data-dir", folder, "--out", "results")
    assert_refused(done, cut, "truncated", "replace it")
    assert entries(tmp_path) == ["data"]


def test_a_data_folder_is_not_passed_over_when_datasets_are_an_axis(call, tmp_path):
    words = ["--dataset", "synthetic", "fashion_mnist_mini", "--iterations", "20"]
    done = call("sweep", *words, "--data-dir", "nowhere", "--out", "results")
    assert_refused(done, "data_dir=")
    assert entries(tmp_path) == []


WILD = ["--model", "quadratic", "--learning-rate", "1e6", "--learning-rate-schedule", "constant"]


def test_a_run_that_diverges_keeps_what_came_before(call, tmp_path):
    done = call("run", *TINY, *WILD, "--checkpoint-seconds", "0", "--out", "results")
    assert_refused(done, "learning_rate=1e+06", "not finite from iteration", "try a learning")
    assert {path.suffix for path in (tmp_path / "results").iterdir()} == {".nc", ".png", ".toml"}
    (path,) = (tmp_path / "results").glob("*.nc")
    kept = efhc.load(path)
    iteration = int(done.err.split("finite from iteration ")[1].split(";")[0])
    assert kept.sizes["step"] == iteration - 1
    assert np.isfinite(kept.train_loss).all()
    assert np.isfinite(kept.accuracy).all()


def test_a_sweep_in_which_runs_diverge_is_finished(call, tmp_path):
    words = [*TINY, *WILD, "--learning-rate", "0.01", "1e6", "--seeds", "2"]
    done = call("sweep", *words, "--out", "results")
    assert (done.code, done.err) == (1, "")
    grid = efhc.load(tmp_path / "results" / "sweep.nc")
    assert (grid.diverged_at.sel(learning_rate=1e6) > 0).all()
    assert (grid.diverged_at.sel(learning_rate=0.01) == -1).all()
    assert "2 of 4 runs diverged" in done.out
    (gone,) = [line for line in done.out.splitlines() if "1000000.0" in line]
    cells = [cell.strip() for cell in gone.strip(" │").split("│")]
    assert cells[1:5] == ["–"] * 4, "what they spent until then is not what they cost"
    assert cells[5].startswith("2 of 2 seeds")


def test_a_sweep_of_methods_is_drawn_against_bits_and_names_who_diverged(call, tmp_path):
    words = [*TINY, *WILD, "--method", "gossip", "choco", "--method.compressor", "none", "--seeds", "2"]
    done = call("sweep", *words, "--learning-rate", "0.5", "--method.gamma", "1", "--out", "results")
    assert done.code == 0, done.out + done.err
    assert "wrote results/sweep.png\n" in done.out
    rows = [line for line in done.out.splitlines() if "gossip" in line or "CHOCO-SGD" in line]
    grid = efhc.load(tmp_path / "results" / "sweep.nc")
    for row, bits in zip(rows, grid.bits.sum("step").values, strict=True):
        megabits = row.strip(" │").split("│")[3].split("±")[0]
        assert float(megabits.replace(",", "")) == pytest.approx(bits.mean() / 1e6, rel=5e-3)
    assert call("plot", "results", "--x", "bits").code == 0
    done = call("sweep", *words, "--out", "wild")
    assert done.code == 1
    assert "method='gossip': 2 of 2 runs diverged, the first at iteration" in done.out
    assert "method='choco': 2 of 2 runs diverged, the first at iteration" in done.out
    assert done.out.endswith("try a smaller learning_rate or a smaller method.gamma\n")


def test_a_run_notes_what_its_method_asks_for(call):
    words = [*TINY, "--method", "extra", "--policy", "zt"]
    done = call("run", *words, "--out", "results")
    needs = "method='extra': its theory needs a constant step size"
    assert done.code == 0
    assert done.err == f"efhc: note: {needs}; give learning_rate_schedule='constant'\n"
    assert call("run", *words, "--learning-rate-schedule", "constant", "--out", "others").err == ""


def test_the_summary_names_the_method():
    run = efhc.simulate(EXPERIMENT)
    titles = {
        "sparq": "sparq, efhc on synthetic, svm",
        "choco": "choco on synthetic, svm",
        "gossip": "efhc on synthetic, svm",
    }
    for method, title in titles.items():
        assert str(summary_table(EXPERIMENT.replace(method=method), run).title) == title
    assert float(dict(summary(run))["megabits sent"]) == pytest.approx(
        float(run.bits.sum()) / 1e6, rel=5e-3
    )


def test_a_table_counts_the_seeds_of_its_means():
    from efhc_jax.cli.sweep import sweep_table

    base = EXPERIMENT.replace(eval_every=20, iterations=20)
    grid = efhc.sweep(base, r=[5.0, 50.0], seed=range(3))
    grid["diverged_at"][0, 1] = 7
    for name in ("accuracy", "broadcasts"):
        grid[name] = grid[name].astype(float)
        grid[name][0, 1, 1] = np.nan
    grid.transmission_time[0, 1, 6:] = np.nan
    columns = [list(column.cells) for column in sweep_table(grid).columns]
    assert columns[-1] == ["1 of 3 seeds, from iteration 7", ""]
    total = grid.transmission_time.sum("step", skipna=False)
    assert columns[2][0].split(" ±")[0] == f"{float(total[0].mean()):,.0f}"
    assert columns[2][0] != "–"


@pytest.mark.parametrize("command", ["run", "sweep"])
@pytest.mark.parametrize("name", ["file", "file/below", "/proc/nowhere/results", "/dev/null"])
def test_a_folder_that_cannot_be_written(call, tmp_path, monkeypatch, command, name):
    (tmp_path / "file").write_text("mine")
    monkeypatch.setattr("efhc_jax.runs.simulation.advance", lambda *a: pytest.fail("the work began"))
    done = call(command, *TINY, "--out", name)
    assert_refused(done, f"efhc: error: out={name}: ")
    assert entries(tmp_path) == ["file"]
    assert (tmp_path / "file").read_text() == "mine"


@contextlib.contextmanager
def nobody():
    """Whoever runs the tests, for a while without the rights of root, who may write anywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_a_read_only_folder(call, tmp_path, command):
    tmp_path.chmod(0o755)
    folder = Path("locked")  # relative, because the way to it may be closed to nobody
    folder.mkdir(mode=0o555)
    call(command, *TINY, "--out", "/dev/null")  # imports the modules, which may be closed as well
    with nobody():
        assert_refused(call(command, *TINY, "--out", folder), "out=locked: ", "Permission denied")
    assert entries(folder) == []


def test_a_trace_too_large_is_refused(call, tmp_path):
    done = call("run", *TINY, "--iterations", "2000000", "--trace", "--out", "results")
    assert_refused(done, "iterations=2000000", "GiB", "try 6,839 iterations or fewer")
    assert entries(tmp_path) == []


def test_a_run_that_is_stopped_too_late_is_stored_and_does_not_count_as_done(
    call, tmp_path, monkeypatch
):
    from efhc_jax.plotting.figures import draw_run

    def interrupted(result):
        os.kill(os.getpid(), signal.SIGINT)
        return draw_run(result)

    monkeypatch.setattr("efhc_jax.plotting.figures.draw_run", interrupted)
    done = call("run", *TINY, "--out", "results")
    assert (done.code, done.err) == (130, "efhc: stopped\n")
    assert {path.suffix for path in (tmp_path / "results").iterdir()} == {".nc", ".png", ".toml"}


def test_a_stopped_run_goes_on_to_the_same_bits(call, tmp_path, monkeypatch):
    def interrupted(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        return advance(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr("efhc_jax.runs.simulation.advance", interrupted)
        done = call("run", *TINY, "--out", "results")
    assert done.code == 130
    assert "Run the same command again to resume from results" in done.out
    assert done.err == "efhc: stopped\n"
    calls = []
    monkeypatch.setattr("efhc_jax.runs.simulation.advance", lambda *a: calls.append(1) or advance(*a))
    assert call("run", *TINY, "--out", "results").code == 0
    assert len(calls) == 1, "ten of the twenty iterations were done"
    (path,) = (tmp_path / "results").glob("*.nc")
    assert efhc.load(path).equals(efhc.simulate(EXPERIMENT))
    assert len(entries(tmp_path / "results")) == 3, "no checkpoint is left"


def test_data_lists_what_there_is(call):
    done = call("data")
    assert done.code == 0
    rows = {line.split("│")[1].strip(): line for line in done.out.splitlines() if "│" in line}
    assert "5,000" in rows["fashion_mnist_mini"]
    assert "yes" in rows["fashion_mnist_mini"]
    assert "2,000" in rows["synthetic"]
    assert "generated" in rows["synthetic"]
    assert "60,000" in rows["fashion_mnist"]
    assert "10,000" in rows["fashion_mnist"]


def test_data_says_how_to_get_what_is_missing(call, tmp_path, monkeypatch):
    monkeypatch.setenv("EFHC_DATA_DIR", str(tmp_path / "empty"))
    done = call("data")
    assert done.code == 0
    (row,) = [line for line in done.out.splitlines() if line.startswith("│ fashion_mnist ")]
    assert "no" in row.split("│")[4]
    assert "EFHC_DATA_DIR" in done.out


def test_help_imports_no_more_than_it_needs():
    program = (
        "import sys\n"
        "from efhc_jax.cli import main\n"
        "for words in (['--help'], ['plot', '--help'], ['run', '--help'], ['sweep', '--help']):\n"
        "    try: main(words)\n"
        "    except SystemExit as stop: assert stop.code == 0\n"
        "    heavy = {'xarray', 'matplotlib', 'scipy', 'orbax', 'flax'}\n"
        "    if words[0] not in ('run', 'sweep'): heavy.add('jax')  # which members are written in\n"
        "    assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    for word in ("run", "sweep", "plot", "data", "--labels-per-device", "--seeds"):
        assert word in done.stdout
    assert done.stderr == ""


def test_no_command_shows_the_help_and_is_no_error(call):
    done = call()
    assert (done.code, done.err) == (0, "")
    assert done == call("--help")
    assert "sweep" in done.out


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version_is_shown_with_that_of_jax(call, flag):
    done = call(flag)
    assert (done.code, done.err) == (0, "")
    version = importlib.metadata.version("jax")
    assert done.out == f"efhc-jax {efhc.__version__} (jax {version})\n"


@pytest.mark.parametrize("command", ["plot", "audit", "animate", "verify", "report"])
def test_a_file_is_required(call, tmp_path, command):
    done = call(command)
    assert done.code == 2
    assert "FILE" in done.err
    assert "no such file" not in done.err
    assert entries(tmp_path) == []


@pytest.mark.parametrize("command", ["plot", "audit", "animate", "verify"])
def test_the_help_says_that_a_file_is_required(call, command):
    shown = " ".join(call(command, "--help").out.split())
    assert re.search(r"FILE Result file \(netCDF\)[^│]*\(required\)", shown)


STUDY = """
dataset = "synthetic"
iterations = 20
eval_every = 10
policy = ["EF-HC", "zt"]
r = [5, 50]
budgets = [10, 30]
"""


def test_lists_in_a_config_are_the_axes_of_a_sweep(call, tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    assert call("sweep", "--config", "study.toml", "--seeds", "2", "--out", "results").code == 0
    grid = efhc.load(tmp_path / "results" / "sweep.nc")
    assert grid.accuracy.dims == ("policy", "r", "seed", "evaluation", "device")
    assert grid.policy.values.tolist() == ["efhc", "zt"]
    assert grid.r.values.tolist() == [5.0, 50.0]
    assert grid.budget.values.tolist() == [10.0, 30.0]


def test_flags_override_a_config_that_they_leave_without_effect(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text("labels_per_device = 2\nr = 5.0")
    experiment = parse(["run", "--config", str(path), "--split", "iid", "--policy", "zt"]).experiment
    assert (experiment.split, experiment.policy, experiment.r) == ("iid", "zt", 5.0)
    with pytest.raises(efhc.ExperimentError, match="dynamics.speed=0.5: has no effect"):
        _ = parse(["run", "--config", str(path), "--dynamics.speed", "0.5"]).experiment


@pytest.mark.parametrize(
    "words",
    [
        "--graph file --graph-file a.npy b.npy",
        "--graph file ring --graph-file a.npy",
        "--placement 0.5 --connectivity 0.5 0.9",
        "--weak-bandwidth 6000 --mean-bandwidth 7000 8000",
    ],
)
def test_settings_of_a_sweep_are_checked_with_its_axes(words):
    experiment, axes = parse(["sweep", *words.split()]).plan()
    grid = Grid.of(experiment, axes)
    check_grid(grid, given=list(grid.experiment.to_dict()))
    assert len(grid.experiments) == 2


def test_flags_override_lists_in_a_config(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    experiment, axes = parse(["sweep", "--config", str(path), "--r", "7", "--policy", "gt", "rg"]).plan()
    assert experiment.r == 7.0
    assert axes == {"policy": ["gt", "rg"]}


def test_seeds_and_a_list_of_seeds_in_a_config(call, tmp_path):
    (tmp_path / "study.toml").write_text("seed = [3, 5]")
    done = call("sweep", "--config", "study.toml", "--seeds", "2", "--out", "results")
    assert_refused(done, "seeds: seed in study.toml already lists them; give one of the two")


def test_a_list_in_the_config_of_a_run(call, tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    done = call("run", "--config", "study.toml", "--out", "results")
    assert_refused(
        done, "config=study.toml: policy=['EF-HC', 'zt']: a run has one value", "use efhc sweep"
    )
    (tmp_path / "study.toml").write_text("budgets = [10, 30]")
    assert parse(["run", "--config", str(tmp_path / "study.toml")]).experiment.budgets == (10, 30)


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_names_as_the_paper_writes_them(call, tmp_path, command):
    words = ["--policy", "EF-HC", "--model", "SVM", "--dataset", "Synthetic", "--iterations", "2"]
    assert call(command, *words, "--devices", "3", "--out", "results").code == 0
    (path,) = (tmp_path / "results").glob("*.nc")
    found = efhc.Experiment.from_json(efhc.load(path).attrs["experiment"])
    assert (found.policy, found.model, found.dataset) == ("efhc", "svm", "synthetic")


def test_the_command_itself_reports_its_exit_code(tmp_path):
    command = [sys.executable, "-m", "efhc_jax", "run", "--devices", "0", "--out", "results"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert done.stderr == ("efhc: error: devices=0: out of range; give a whole number of 1 or more\n")
    assert done.stdout == ""


SWEEP = [
    "sweep",
    *TINY,
    *("--policy", "efhc", "zt"),
    *("--r", "5", "50"),
    *("--seeds", "2"),
    *("--budgets", "10", "30"),
]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished sweep: two policies, two r, two seeds."""
    folder = tmp_path_factory.mktemp("finished") / "sweep"
    assert main([*SWEEP, "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def sweep_folder(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "sweep")


def test_a_sweep_has_the_axes_that_were_asked_for(finished):
    grid = efhc.load(finished / "sweep.nc")
    assert grid.accuracy.dims == ("policy", "r", "seed", "evaluation", "device")
    assert grid.policy.values.tolist() == ["efhc", "zt"]
    assert grid.r.values.tolist() == [5.0, 50.0]
    assert grid.seed.values.tolist() == [0, 1]
    assert grid.budget.values.tolist() == [10.0, 30.0]
    assert entries(finished) == ["sweep.json", "sweep.nc"]
    manifest = json.loads((finished / "sweep.json").read_text())
    assert manifest["axes"] == {"policy": ["efhc", "zt"], "r": [5.0, 50.0], "seed": [0, 1]}


def test_a_finished_sweep_is_loaded_again(call, sweep_folder, monkeypatch):
    monkeypatch.setattr("efhc_jax.runs.simulation.advance", lambda *a: pytest.fail("computed again"))
    before = (sweep_folder / "sweep.nc").read_bytes()
    done = call(*SWEEP, "--out", sweep_folder)
    assert (done.code, done.err) == (0, "")
    assert "2 seeds, 95% intervals" in done.out
    rows = [line for line in done.out.splitlines() if line.startswith("│")]
    assert len(rows) == 4
    assert f"efhc plot {sweep_folder}/sweep.nc --x r" in done.out
    assert (sweep_folder / "sweep.nc").read_bytes() == before


def test_another_sweep_in_the_folder_is_refused(call, sweep_folder):
    before = (sweep_folder / "sweep.json").read_bytes()
    done = call(*SWEEP, "--learning-rate", "0.5", "--seeds", "3", "--out", sweep_folder)
    assert_refused(
        done,
        f"out={sweep_folder}: contains another sweep",
        "learning_rate is 1.0 there and 0.5 here",
        "seed is [0, 1] there and [0, 1, 2] here",
        "give another folder",
    )
    assert (sweep_folder / "sweep.json").read_bytes() == before


def test_a_sweep_of_policies_is_drawn(call, tmp_path):
    words = [*TINY, "--policy", "efhc", "zt", "rg", "gt", "--seeds", "2", "--budgets", "10", "30"]
    done = call("sweep", *words, "--out", "results")
    assert (done.code, done.err) == (0, "")
    assert "8 runs in batches of 8 on cpu, 1 compilation" in done.out
    assert "wrote results/sweep.png" in done.out
    assert (tmp_path / "results" / "sweep.png").read_bytes().startswith(b"\x89PNG")
    for label in ("EF-HC", "ZT", "RG", "GT"):
        assert f"│ {label}" in done.out


def test_a_config_gives_a_sweep_its_settings(call, tmp_path):
    (tmp_path / "my.toml").write_text(EXPERIMENT.replace(policy="gt", seed=5).to_toml())
    words = ["--r", "3", "--seeds", "8", "--budgets", "10", "30", "--out", "results"]
    assert call("sweep", "--config", "my.toml", *words).code == 0
    grid = efhc.load(tmp_path / "results" / "sweep.nc")
    base = efhc.Experiment.from_json(grid.attrs["experiment"])
    assert (base.policy, base.r, base.iterations) == ("gt", 3.0, 20)
    assert grid.seed.values.tolist() == list(range(5, 13))


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--policy", "efhc", "efhc"], ["policy: the axis has 'efhc' twice", "give each value once"]),
        (["--r", "5", "50", "5.0"], ["r: the axis has 5.0 twice"]),
        (["--policy", "efhc", "ztt"], ["policy='ztt': unknown", "did you mean 'zt'"]),
        (["--weak_fraction", "0.2", "2"], ["weak_fraction=2.0: out of range"]),
        (["--seeds", "0"], ["seeds=0: give a whole number of 1 or more"]),
        (["--seeds", "-2"], ["seeds=-2"]),
        (["--seed", "1", "2", "--seeds", "3"], ["seeds: --seed already lists them"]),
        (["--iterations", "10", "20"], ["iterations: cannot be an axis", "run the longest"]),
        (["--eval-every", "5", "10"], ["eval_every: cannot be an axis"]),
        (["--runs-at-once", "0"], ["runs_at_once=0: "]),
        (["--runs-at-once", "100000000"], ["runs_at_once=100000000: needs", "or less"]),
        (["--seed", "4294967295", "--seeds", "2"], ["seed=4294967296: out of range"]),
    ],
)
def test_a_sweep_that_makes_no_sense_is_refused(call, tmp_path, words, parts):
    done = call("sweep", *TINY, *words, "--out", "results")
    assert_refused(done, *parts)
    assert entries(tmp_path) == []


@pytest.mark.parametrize("field", ["seed", "policy", "r", "budgets"])
def test_a_flag_without_values_is_not_passed_over(call, tmp_path, field):
    done = call("sweep", *TINY, flag(field), "--out", "results")
    assert done.code == 2
    assert field in done.err
    assert entries(tmp_path) == []


def test_a_damaged_manifest_is_named(call, sweep_folder):
    (sweep_folder / "sweep.json").write_text("{")
    assert_refused(call(*SWEEP, "--out", sweep_folder), "sweep.json: cannot be read")


@pytest.mark.parametrize(
    "words",
    [
        ["--x", "r"],
        ["--x", "r", "--y", "test_loss", "--hue", "policy"],
        ["--x", "r", "--iteration", "10"],
        ["--x", "r", "--budget", "10"],
        ["--x", "policy", "--select", "r=50"],
        ["--x", "r", "--rows", "policy"],
        ["--x", "r", "--rows", "seed", "--y", "consensus_error"],
        ["--select", "r=5"],
        ["--select", "r=5.0", "policy=zt"],
        ["--select", "policy=zt", "--hue", "r"],
    ],
)
def test_plots_of_a_sweep(call, sweep_folder, tmp_path, words):
    done = call("plot", sweep_folder / "sweep.nc", *words, "--out", "picture.png")
    assert (done.code, done.err) == (0, "")
    assert done.out == "wrote picture.png\n"
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_a_plot_stands_beside_its_file(call, sweep_folder):
    assert call("plot", sweep_folder / "sweep.nc", "--x", "r").code == 0
    assert (sweep_folder / "sweep.png").stat().st_size > 5000


@pytest.mark.parametrize(("ending", "magic"), [("pdf", b"%PDF"), ("svg", b"<?xml"), ("PNG", b"\x89PNG")])
def test_a_plot_in_another_format(call, sweep_folder, tmp_path, ending, magic):
    done = call("plot", sweep_folder / "sweep.nc", "--x", "r", "--out", f"picture.{ending}")
    assert done.code == 0
    assert (tmp_path / f"picture.{ending}").read_bytes().startswith(magic)


def test_a_plot_of_a_run(call, tmp_path):
    efhc.save(efhc.simulate(EXPERIMENT), tmp_path / "run.nc")
    assert call("plot", "run.nc").code == 0
    assert (tmp_path / "run.png").stat().st_size > 5000
    done = call("plot", "run.nc", "--x", "r", "--out", "other.png")
    assert_refused(done, "r: not an axis", "run")
    assert entries(tmp_path) == ["run.nc", "run.png"]


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--x", "devices"], ["devices: not an axis of this sweep", "policy, r, seed"]),
        (["--x", "r", "--y", "acuracy"], ["acuracy: not in the results", "choose from accuracy"]),
        (["--x", "r", "--hue", "polcy"], ["polcy: not an axis"]),
        (["--x", "r", "--rows", "devices"], ["devices: not an axis"]),
        (["--x", "r", "--rows", "r"], ["r: used twice"]),
        (["--rows", "r"], ["rows=r: a heat map is drawn against an axis"]),
        (["--x", "r", "--lead", "efhc"], ["lead=efhc: is drawn as a heat map; give rows"]),
        ([], ["r: the sweep has [5.0, 50.0]", "--select r=5.0"]),
        (["--x", "r", "--out", "picture.gif"], ["out=picture.gif", ".png, .pdf or .svg"]),
        (["--x", "r", "--budget", "11"], ["budget=11", "[10.0, 30.0]"]),
        (["--x", "r", "--budget", "10", "--y", "test_loss"], ["y=test_loss", "only accuracy is"]),
        (["--x", "r", "--iteration", "11"], ["iteration=11: has no evaluation; try 10"]),
        (["--x", "r", "--select", "policy"], ["select='policy'", "give AXIS=VALUE"]),
        (["--x", "r", "--select", "devices=5"], ["select='devices'", "axis of the sweep"]),
        (["--x", "r", "--select", "policy=rg"], ["select=policy=rg", "['efhc', 'zt']"]),
        (["--x", "r", "--select", "r=7"], ["select=r=7", "[5.0, 50.0]"]),
    ],
)
def test_a_plot_that_makes_no_sense_is_refused(call, sweep_folder, tmp_path, words, parts):
    done = call("plot", sweep_folder / "sweep.nc", *words)
    assert_refused(done, *parts)
    assert entries(tmp_path) == ["sweep"]
    assert "sweep.png" not in entries(sweep_folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "no such file"), (b"", "cannot be read as netCDF"), (b"text", "cannot be read as netCDF")],
)
def test_a_plot_of_something_else(call, tmp_path, content, message):
    if content is not None:
        (tmp_path / "other.nc").write_bytes(content)
    assert_refused(call("plot", "other.nc"), f"other.nc: {message}")
