"""Sweeps: labelled, paired, independent of how they are batched, and the same after a crash."""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import xarray

import efhc_jax as efhc
from efhc_jax.engine.evaluation import evaluate
from efhc_jax.engine.program import advance
from efhc_jax.plotting.figures import draw_lines
from efhc_jax.runs.grid import Grid
from efhc_jax.runs.prepare import prepare
from efhc_jax.runs.simulation import Control
from efhc_jax.runs.sweeps import predict
from small import SMALL, named_after

AXES = {"policy": ["efhc", "gt", "zt", "rg"], "r": [400.0, 4000.0], "seed": range(2)}


@pytest.fixture(scope="module")
def grid(tiny):
    return efhc.sweep(SMALL, tiny, **AXES)


def test_every_axis_is_a_labelled_dimension(grid):
    assert dict(grid.accuracy.sizes) == {
        "policy": 4,
        "r": 2,
        "seed": 2,
        "evaluation": 3,
        "device": 5,
    }
    assert grid.policy.values.tolist() == ["efhc", "gt", "zt", "rg"]
    assert grid.r.values.tolist() == [400.0, 4000.0]
    assert grid.iteration.values.tolist() == [0, 10, 20]
    assert efhc.Experiment.from_json(grid.attrs["experiment"]) == named_after(
        SMALL.replace(r=400.0), "tiny"
    )


def test_a_cell_is_the_run_of_its_settings(x64, tiny):
    grid = efhc.sweep(SMALL, tiny, **AXES)
    for policy, r, seed in [("efhc", 4000.0, 1), ("rg", 400.0, 0)]:
        alone = efhc.simulate(SMALL.inherit({"policy": policy, "r": r, "seed": seed}), tiny)
        cell = grid.sel(policy=policy, r=r, seed=seed)
        np.testing.assert_array_equal(cell.links_used, alone.links_used)
        np.testing.assert_allclose(cell.test_loss, alone.test_loss, rtol=1e-10)


@pytest.mark.parametrize("batch", [1, 3, 5])
def test_batches_change_nothing(x64, tiny, batch):
    whole = efhc.sweep(SMALL, tiny, **AXES)
    parts = efhc.sweep(SMALL, tiny, runs_at_once=batch, **AXES)
    np.testing.assert_array_equal(whole.links_used, parts.links_used)
    np.testing.assert_allclose(whole.test_loss, parts.test_loss, rtol=1e-10)


def test_initial_models_are_evaluated_once_a_seed(tiny, monkeypatch):
    axes = {"policy": ["efhc", "zt", "rg"], "seed": range(4)}
    calls = []
    monkeypatch.setattr("efhc_jax.runs.simulation.evaluate", lambda *a: calls.append(1) or evaluate(*a))
    grid = efhc.sweep(SMALL, tiny, runs_at_once=4, **axes)
    assert len(calls) == 1 + 3 * 2, "three batches with two evaluations after the beginning"
    for policy, seed in itertools.product(axes["policy"], axes["seed"]):
        alone = efhc.simulate(SMALL.replace(policy=policy, seed=seed), tiny)
        first = grid.sel(policy=policy, seed=seed).isel(evaluation=0)
        for name in ("accuracy", "test_loss", "mean_model_accuracy", "consensus_error", "broadcasts"):
            np.testing.assert_array_equal(first[name], alone[name].isel(evaluation=0), name)


def test_the_whole_grid_is_one_compilation(tiny, grid):
    before = advance._cache_size()
    efhc.sweep(
        SMALL,
        tiny,
        policy=["local", "central"],
        weak_fraction=[0.0, 0.4],
        connectivity=[0.6, 0.9],
        seed=[7, 8],
    )
    assert advance._cache_size() == before


def test_runs_of_a_seed_are_paired(tiny):
    grid = efhc.sweep(
        SMALL,
        tiny,
        policy=["efhc", "zt"],
        weak_fraction=[0.2, 0.6],
        connectivity=[0.6, 0.9],
        seed=range(3),
    )
    first = grid.test_loss.isel(evaluation=0)
    assert (first == first.isel(policy=0, weak_fraction=0, connectivity=0)).all(), "models"
    loss = grid.train_loss.isel(step=0)
    assert (loss == loss.isel(policy=0, weak_fraction=0, connectivity=0)).all(), "mini-batches"
    weak = grid.bandwidth == 1000
    assert (weak.sel(weak_fraction=0.6) | ~weak.sel(weak_fraction=0.2)).all(), "weak nest in H"
    assert not first.isel(seed=0, drop=True).equals(first.isel(seed=1, drop=True))


def test_a_graph_is_that_of_its_connectivity_alone(tiny):
    """What else is swept has no part in it: a cell is the run of its settings."""
    axes = {"connectivity": [0.5, 0.9], "seed": range(3)}
    grid = efhc.sweep(SMALL, tiny, **axes)
    for connectivity, seed in itertools.product(*axes.values()):
        alone = prepare(SMALL.replace(connectivity=connectivity, seed=seed), tiny)
        degree = grid.degree.sel(connectivity=connectivity, seed=seed).values
        np.testing.assert_array_equal(degree, alone.network.adjacency.sum(1))


def test_nested_graphs_are_dense(tiny):
    """Positions that are connected at a small radius are crowded: why nesting has to be asked for."""
    sparse, dense = 0.35, 0.9
    axes = {"connectivity": [sparse, dense], "seed": range(20)}
    base = SMALL.replace(devices=8)
    own, nested = (Grid.of(base, axes, nested).experiments for nested in (False, True))
    degree = [
        np.mean([prepare(e, tiny).network.adjacency.sum() / 8 for e in cells if e.connectivity == dense])
        for cells in (own, nested)
    ]
    assert degree[1] > degree[0] + 0.3


def test_nesting_is_said_and_needs_connectivities(tiny):
    axes = {"connectivity": [0.5, 0.9]}
    said = "; nested graphs: all use positions that are connected at 0.5"
    assert predict(Grid.of(SMALL, axes, nested=True), tiny).endswith(said)
    assert "nested" not in predict(Grid.of(SMALL, axes), tiny)
    grid = efhc.sweep(SMALL, tiny, nested=True, **axes)
    assert "nested graphs" in draw_lines(grid, "connectivity", "accuracy").get_suptitle()
    with pytest.raises(
        efhc.ExperimentError, match="nested: has no effect without an axis of connectivities"
    ):
        efhc.sweep(SMALL, tiny, nested=True, seed=range(2))
    with pytest.raises(efhc.ExperimentError, match="has no effect with graph='erdos_renyi'"):
        efhc.sweep(SMALL.replace(graph="erdos_renyi"), tiny, nested=True, **axes)
    with pytest.raises(efhc.ExperimentError, match="placement=0.2: nested graphs have positions"):
        efhc.sweep(SMALL.replace(placement=0.2), tiny, nested=True, **axes)


@pytest.mark.parametrize(
    ("axis", "said"),
    [
        ({"connectivity": ["a", 0.5]}, "connectivity='a': give a number above 0"),
        ({"weak_fraction": [Fraction(1, 2), 0.5]}, "weak_fraction: the axis has 0.5 twice"),
        ({"connectivity": [0.5, 7.0]}, "connectivity=7.0: out of range"),
    ],
)
def test_values_of_an_axis_are_checked_alone_first(axis, said):
    with pytest.raises(efhc.ExperimentError, match=re.escape(said)):
        Grid.of(SMALL, axis, nested="connectivity" in axis)


def test_graphs_nest_where_that_is_asked_for(tiny):
    axes = {"connectivity": [0.5, 0.7, 0.9], "seed": range(4)}
    cells = Grid.of(SMALL, axes, nested=True).experiments
    graphs = {(e.seed, e.connectivity): prepare(e, tiny).network.adjacency for e in cells}
    for seed in range(4):
        near, middle, wide = (graphs[seed, c] for c in (0.5, 0.7, 0.9))
        assert (middle | ~near).all()
        assert (wide | ~middle).all()


def test_shapes_may_be_axes_too(tiny):
    grid = efhc.sweep(SMALL, tiny, devices=[3, 5], model=["svm", "logistic"])
    assert grid.accuracy.sizes["device"] == 5
    assert np.isnan(grid.accuracy.sel(devices=3, device=[3, 4])).all()
    assert not np.isnan(grid.accuracy.sel(devices=5)).any()
    alone = efhc.simulate(SMALL.replace(devices=3, model="logistic"), tiny)
    cell = grid.sel(devices=3, model="logistic", device=[0, 1, 2])
    np.testing.assert_allclose(cell.test_loss, alone.test_loss, rtol=1e-4)


def test_a_run_that_diverges_leaves_the_others_alone(tiny):
    wild = SMALL.replace(model="quadratic", learning_rate_schedule="constant")
    grid = efhc.sweep(wild, tiny, learning_rate=[0.1, 1e6])
    assert grid.diverged_at.values[0] == -1
    assert 0 < grid.diverged_at.values[1] <= 20
    assert not np.isnan(grid.accuracy[0]).any()
    assert np.isnan(grid.accuracy[1, -1]).all()


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"polcy": ["efhc"]}, "polcy: no such field, did you mean 'policy'"),
        ({"lr": [1.0]}, "lr: no such field, did you mean 'learning_rate'"),
        ({"policy": ["EF-HC", "efhc"]}, "policy: the axis has 'efhc' twice"),
        ({"r": []}, "r: the axis is empty"),
        ({"r": [1.0, 2.0, 1.0]}, "r: the axis has 1.0 twice"),
        ({"weak_fraction": [0.2, 1.5]}, "weak_fraction=1.5: out of range"),
        ({"policy": "efhc"}, "policy='efhc': an axis needs a list"),
        ({"r": 5}, "r=5: an axis needs a list"),
        ({"iterations": [10, 20]}, "iterations: cannot be an axis"),
        ({"policy": ["efhc", "none"]}, "policy='none': unknown"),
    ],
)
def test_a_bad_axis_is_named(tiny, axes, message):
    with pytest.raises(efhc.ExperimentError, match=message):
        efhc.sweep(SMALL, tiny, **axes)


class Interruption(Exception):
    pass


def interrupted_after(monkeypatch, calls):
    """Make the engine fail at its n-th chunk, as a crash would."""
    count = 0

    def failing(*arguments):
        nonlocal count
        count += 1
        if count > calls:
            raise Interruption
        return advance(*arguments)

    monkeypatch.setattr("efhc_jax.runs.simulation.advance", failing)


def test_the_time_of_a_resumed_sweep_is_that_of_all_its_parts(tiny, tmp_path, monkeypatch):
    ticks = SimpleNamespace(perf_counter=itertools.count().__next__)  # a second at every look
    monkeypatch.setattr("efhc_jax.runs.simulation.time", ticks)
    whole = efhc.sweep(SMALL, tiny, runs_at_once=4, **AXES)
    with monkeypatch.context() as patch:
        interrupted_after(patch, 5)
        with pytest.raises(Interruption):
            efhc.sweep(SMALL, tiny, runs_at_once=4, out=tmp_path, checkpoint_seconds=0.0, **AXES)
    resumed = efhc.sweep(SMALL, tiny, runs_at_once=4, out=tmp_path, checkpoint_seconds=0.0, **AXES)
    assert resumed.attrs["seconds"] == pytest.approx(whole.attrs["seconds"], abs=2)
    assert resumed.attrs["evaluation_seconds"] == whole.attrs["evaluation_seconds"]


def test_a_batch_that_is_filled_up_takes_its_whole_time(tiny, monkeypatch):
    ticks = SimpleNamespace(perf_counter=itertools.count().__next__)
    monkeypatch.setattr("efhc_jax.runs.simulation.time", ticks)
    one, two = (efhc.sweep(SMALL, tiny, runs_at_once=4, seed=range(runs)) for runs in (4, 5))
    assert two.attrs["seconds"] == pytest.approx(2 * one.attrs["seconds"])
    assert two.attrs["evaluation_seconds"] == pytest.approx(2 * one.attrs["evaluation_seconds"])


@pytest.mark.parametrize("calls", [1, 3, 6])
def test_a_crashed_sweep_goes_on_to_the_same_bits(tiny, tmp_path, monkeypatch, calls):
    whole = efhc.sweep(SMALL, tiny, runs_at_once=4, **AXES)
    with monkeypatch.context() as patch:
        interrupted_after(patch, calls)
        with pytest.raises(Interruption):
            efhc.sweep(SMALL, tiny, runs_at_once=4, out=tmp_path, checkpoint_seconds=0.0, **AXES)
    resumed = efhc.sweep(SMALL, tiny, runs_at_once=4, out=tmp_path, checkpoint_seconds=0.0, **AXES)
    assert resumed.equals(whole)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sweep.json", "sweep.nc"]
    assert efhc.sweep(SMALL, tiny, out=tmp_path, **AXES).equals(whole), "loaded when all is done"


def test_finished_batches_are_not_computed_again(tiny, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        interrupted_after(patch, 5)
        with pytest.raises(Interruption):
            efhc.sweep(SMALL, tiny, runs_at_once=4, out=tmp_path, checkpoint_seconds=1e9, **AXES)
    stored = {path: path.stat().st_mtime_ns for path in (tmp_path / "batches").iterdir()}
    assert len(stored) == 2
    calls = []
    monkeypatch.setattr("efhc_jax.runs.simulation.advance", lambda *a: calls.append(1) or advance(*a))
    efhc.sweep(SMALL, tiny, runs_at_once=4, out=tmp_path, **AXES)
    assert len(calls) == 2 * 2, "two batches of two chunks were left"


def test_a_stop_request_saves_and_goes_on(tiny, tmp_path):
    asked = iter([False, False, True])
    with pytest.raises(KeyboardInterrupt):
        efhc.sweep(SMALL, tiny, out=tmp_path, should_stop=lambda: next(asked), **AXES)
    assert any((tmp_path / "checkpoint").rglob("*"))
    assert efhc.sweep(SMALL, tiny, out=tmp_path, **AXES).equals(efhc.sweep(SMALL, tiny, **AXES))


def test_a_single_run_goes_on_from_its_checkpoint_to_the_same_bits(tiny, tmp_path, monkeypatch):
    from efhc_jax.storage.checkpoints import Checkpoints

    experiment = SMALL.replace(iterations=60, budgets=(0.02, 0.1))
    whole = efhc.simulate(experiment, tiny)
    control = Control(checkpoints=Checkpoints(tmp_path / "checkpoint", 0.0))
    with monkeypatch.context() as patch:
        interrupted_after(patch, 3)
        with pytest.raises(Interruption):
            efhc.simulate(experiment, tiny, control=control)
    resumed = efhc.simulate(experiment, tiny, control=control)
    assert resumed.equals(whole)


def test_another_experiment_in_the_folder_is_refused(tiny, tmp_path, grid):
    efhc.sweep(SMALL, tiny, out=tmp_path, **AXES)
    with pytest.raises(efhc.ExperimentError, match=r"seed is \[0, 1\] there and \[0, 1, 2\] here"):
        efhc.sweep(SMALL, tiny, out=tmp_path, **(AXES | {"seed": range(3)}))
    with pytest.raises(efhc.ExperimentError, match=r"learning_rate is 0.5 there and 0.25 here"):
        efhc.sweep(SMALL.replace(learning_rate=0.25), tiny, out=tmp_path, **AXES)


def test_prediction_names_runs_batches_and_memory(tiny):
    text = predict(Grid.of(SMALL, AXES), tiny, 8)
    assert text.startswith("16 runs in batches of 8 on cpu, 1 compilation, about ")


COMMAND = [
    sys.executable,
    "-m",
    "efhc_jax",
    "sweep",
    "--dataset",
    "synthetic",
    "--policy",
    "efhc",
    "zt",
    "--seeds",
    "4",
    "--iterations",
    "400",
    "--eval-every",
    "20",
    "--runs-at-once",
    "2",
    "--checkpoint-seconds",
    "0",
]


def test_killed_at_random_moments_nothing_is_lost(tmp_path):
    """The command itself, under kill -9; `scripts/fault_test` does it twenty times."""
    subprocess.run([*COMMAND, "--out", str(tmp_path / "whole")], check=True, capture_output=True)
    out = tmp_path / "killed"
    finished = 0
    for delay in (0.4, 1.0):
        process = subprocess.Popen([*COMMAND, "--out", str(out)], stderr=subprocess.DEVNULL)
        wait_for(out / "sweep.json")
        time.sleep(delay)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        batches = len(list((out / "batches").glob("*.npz"))) if (out / "batches").exists() else 0
        assert batches >= finished
        finished = batches
    subprocess.run([*COMMAND, "--out", str(out)], check=True, capture_output=True)
    whole, resumed = (xarray.load_dataset(p / "sweep.nc") for p in (tmp_path / "whole", out))
    assert resumed.equals(whole)
    assert not list(out.rglob("*efhc-part*"))


def wait_for(path: Path, seconds: float = 60.0):
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, f"{path} never appeared"
        time.sleep(0.05)


SMALL_SWEEP = [
    "sweep",
    "--dataset",
    "synthetic",
    "--policy",
    "efhc",
    "rg",
    "--seeds",
    "5",
    "--iterations",
    "40",
    "--eval-every",
    "20",
    "--budgets",
    "20",
]


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The small sweep on one device, in 64 bits."""
    out = tmp_path_factory.mktemp("reference")
    run_sweep(out)
    return xarray.load_dataset(out / "sweep.nc")


def run_sweep(out, *extra, devices=1):
    environment = os.environ | {
        "JAX_ENABLE_X64": "1",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
    }
    command = [sys.executable, "-m", "efhc_jax", *SMALL_SWEEP, "--out", str(out), *extra]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True)


def assert_same(ours, reference):
    np.testing.assert_array_equal(ours.links_used, reference.links_used)
    np.testing.assert_allclose(ours.test_loss, reference.test_loss, rtol=1e-9)
    np.testing.assert_array_equal(ours.accuracy_at_budget, reference.accuracy_at_budget)
    assert (reference.iteration_at_budget > 0).any()


def test_eight_virtual_devices_give_the_same(reference, tmp_path):
    done = run_sweep(tmp_path, devices=8)
    assert "8 CPU cores" in done.stdout
    assert_same(xarray.load_dataset(tmp_path / "sweep.nc"), reference)


def test_a_sweep_on_a_cpu_has_one_device_a_core_and_gives_the_same(reference, tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    command = [sys.executable, "-m", "efhc_jax", *SMALL_SWEEP, "--out", str(tmp_path)]
    done = subprocess.run(
        command, env=environment | {"JAX_ENABLE_X64": "1"}, check=True, capture_output=True, text=True
    )
    cores = min(len(os.sched_getaffinity(0)), 10)
    assert (f"on {cores} CPU cores" if cores > 1 else "on cpu") in done.stdout
    assert_same(xarray.load_dataset(tmp_path / "sweep.nc"), reference)


def test_two_processes_give_the_same(reference, tmp_path):
    port = 20000 + os.getpid() % 20000
    environment = os.environ | {"JAX_ENABLE_X64": "1"}
    processes = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "efhc_jax",
                *SMALL_SWEEP,
                "--out",
                str(tmp_path),
                "--distributed",
                "--coordinator",
                f"127.0.0.1:{port}",
                "--processes",
                "2",
                "--process-id",
                str(number),
            ],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    outputs = [process.communicate(timeout=240) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert "2 CPUs" in outputs[0][0]
    assert_same(xarray.load_dataset(tmp_path / "sweep.nc"), reference)


def test_distributed_without_a_job_says_what_to_do():
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
    command = [sys.executable, "-m", "efhc_jax", *SMALL_SWEEP, "--distributed"]
    done = subprocess.run(command, env=clean, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr.startswith("efhc: error: distributed: no job to join")
    assert "--coordinator HOST:PORT" in done.stderr


def test_a_mesh_that_does_not_divide_the_batch_is_named(tmp_path):
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run_sweep(tmp_path, "--runs-at-once", "10", devices=8)
    assert caught.value.returncode == 2
    assert "runs_at_once=10: cannot be divided over 8 CPU cores" in caught.value.stderr


def test_the_manifest_is_plain_json(tiny, tmp_path):
    efhc.sweep(SMALL, tiny, out=tmp_path, seed=[0, 1])
    manifest = json.loads((tmp_path / "sweep.json").read_text())
    assert manifest["axes"] == {"seed": [0, 1]}
    assert manifest["experiment"]["devices"] == 5


def test_a_full_disk_is_named_and_what_is_stored_stays(tmp_path):
    """No file may grow beyond 20 kB: the first batches are small enough, the result is not."""
    limited = "import resource, signal, sys; from efhc_jax.cli import main; "
    limited += "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limited += (
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)); sys.exit(main(sys.argv[1:]))"
    )
    command = [*COMMAND[3:-2], "--out", str(tmp_path), "--checkpoint-seconds", "1000"]
    environment = os.environ | {"JAX_ENABLE_COMPILATION_CACHE": "false"}
    done = subprocess.run(
        [sys.executable, "-c", limited, *command], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "File too large" in done.stderr
    assert (tmp_path / "sweep.json").exists()
    stored = list((tmp_path / "batches").glob("*.npz"))
    assert len(stored) == 4
    assert not (tmp_path / "sweep.nc").exists()
    assert not list(tmp_path.rglob("*efhc-part*"))
    again = subprocess.run([*COMMAND, "--out", str(tmp_path)], capture_output=True, text=True)
    assert again.returncode == 0, "with room again, it goes on"
    assert (tmp_path / "sweep.nc").exists()


def test_a_folder_begun_without_an_audit_does_not_go_on_with_one(tiny, tmp_path):
    efhc.sweep(SMALL, tiny, r=[1.0, 2.0], out=tmp_path)
    with pytest.raises(efhc.ExperimentError, match="only one of them is recorded for an audit"):
        efhc.sweep(SMALL, tiny, r=[1.0, 2.0], out=tmp_path, audit=True)


def test_an_audit_that_would_fill_the_memory_is_refused(tiny):
    with pytest.raises(efhc.ExperimentError, match="audit: the graphs of 2 runs would take"):
        efhc.sweep(SMALL.replace(devices=40_000), tiny, r=[1.0, 2.0], audit=True)


@pytest.mark.parametrize("begin", [efhc.simulate, efhc.sweep])
@pytest.mark.parametrize(
    ("given", "try_"),
    [
        ({"policy": "zt"}, "Experiment.from_dict"),
        ("my.toml", "Experiment.from_toml"),
        (efhc.Experiment, "Experiment(policy='zt')"),
        (None, "Experiment(policy='zt')"),
    ],
)
def test_what_is_not_an_experiment_is_refused(begin, given, try_):
    with pytest.raises(efhc.ExperimentError, match="^experiment=.*: is not an Experiment") as error:
        begin(given)
    assert try_ in str(error.value)


def test_the_number_of_parameters_is_stored(tiny, tmp_path):
    run = efhc.load(efhc.save(efhc.simulate(SMALL, tiny), tmp_path / "run.nc"))
    size = efhc.make_model(SMALL.model, tiny.image_shape, tiny.classes).size
    assert run.attrs["parameters"] == size
    grid = efhc.sweep(SMALL, tiny, seed=range(2))
    assert grid.attrs["parameters"] == size
    several = efhc.sweep(SMALL, tiny, model=["svm", "quadratic"])
    sizes = json.loads(several.attrs["parameters"])
    assert sizes == {"svm on tiny": 40, "quadratic on tiny": 36}
