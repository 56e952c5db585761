"""Results: names and dimensions that others build on, and files that can be trusted."""

import io
import json
import platform
from pathlib import Path

import h5py
import jax
import numpy as np
import pytest
import xarray

import efhc_jax as efhc
from efhc_jax.disk.seals import read_sealed, sealed
from efhc_jax.results.datasets import FORMAT, run_dataset, sweep_dataset
from efhc_jax.results.history import Record
from efhc_jax.storage.netcdf import file_stem
from small import SMALL, named_after

OF_A_RUN = {
    "accuracy": ("evaluation", "device"),
    "test_loss": ("evaluation", "device"),
    "consensus_error": ("evaluation",),
    "mean_model_accuracy": ("evaluation",),
    "transmission_time": ("step",),
    "messages": ("step",),
    "bits": ("step",),
    "train_loss": ("step",),
    "links_used": ("step",),
    "new_links_used": ("step",),
    "new_link_time": ("step",),
    "broadcasts": ("evaluation", "device"),
    "bandwidth": ("device",),
    "degree": ("device",),
}
OF_A_TRACE = OF_A_RUN | {
    "global_loss": ("evaluation",),
    "weights": ("instant", "device", "parameter"),
    "last_broadcast": ("instant", "device", "parameter"),
    "adjacency": ("step", "device", "neighbor"),
    "used_links": ("step", "device", "neighbor"),
    "fired": ("step", "device"),
    "gradient_norm": ("step", "device"),
    "largest_gradient": ("step", "device"),
    "sample": ("step", "device", "batch"),
}
OF_BUDGETS = {
    "accuracy_at_budget": ("budget", "device"),
    "iteration_at_budget": ("budget",),
}


@pytest.fixture(scope="module")
def run(tiny):
    return efhc.simulate(SMALL, tiny)


@pytest.fixture(scope="module")
def trace(tiny):
    return efhc.simulate(SMALL, tiny, trace=True)


def dimensions(dataset):
    return {name: variable.dims for name, variable in dataset.data_vars.items()}


def test_a_run_has_these_variables_and_no_others(run):
    assert dimensions(run) == OF_A_RUN
    assert dict(run.sizes) == {"evaluation": 3, "device": 5, "step": 20}
    assert run.iteration.dims == ("evaluation",)
    assert run.iteration.values.tolist() == [0, 10, 20]
    assert run.device.values.tolist() == [0, 1, 2, 3, 4]
    assert all(variable.attrs["description"] for variable in run.data_vars.values())


def test_a_trace_has_the_inside_as_well(trace, tiny):
    assert dimensions(trace) == OF_A_TRACE
    assert dict(trace.sizes) == {
        "evaluation": 3,
        "device": 5,
        "step": 20,
        "instant": 21,
        "parameter": 40,
        "neighbor": 5,
        "batch": 2,
    }
    np.testing.assert_array_equal(trace.degree, trace.adjacency[0].sum("neighbor"))
    assert 0 <= int(trace["sample"].min()) <= int(trace["sample"].max()) < len(tiny.train_labels)


def test_budgets_are_a_dimension_of_their_own(tiny):
    run = efhc.simulate(SMALL.replace(budgets=(0.1, 0.02)), tiny)
    assert dimensions(run) == OF_A_RUN | OF_BUDGETS
    assert run.budget.values.tolist() == [0.02, 0.1]


@pytest.mark.parametrize("fixture", ["run", "trace"])
def test_stored_and_read_back(request, tmp_path, fixture):
    dataset = request.getfixturevalue(fixture)
    path = efhc.save(dataset, tmp_path / "new" / "run.nc")
    assert path == tmp_path / "new" / "run.nc"
    back = efhc.load(path)
    assert back.equals(dataset)
    assert {name: v.dtype for name, v in back.items()} == {n: v.dtype for n, v in dataset.items()}
    assert back.attrs == dataset.attrs
    assert back.accuracy.attrs == dataset.accuracy.attrs
    path.unlink()
    back.load()


def test_anyone_can_read_the_file_without_this_package(run, tmp_path):
    path = efhc.save(run, tmp_path / "run.nc")
    assert xarray.load_dataset(path).equals(run)
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.nc"]


def test_attributes_say_how_to_run_it_again(run):
    assert efhc.Experiment.from_json(run.attrs["experiment"]) == named_after(SMALL, "tiny")
    versions = json.loads(run.attrs["versions"])
    assert versions["jax"] == jax.__version__
    assert versions["numpy"] == np.__version__
    assert versions["efhc-jax"] == efhc.__version__
    assert run.attrs["python"] == platform.python_version()
    assert run.attrs["platform"].startswith("cpu")
    assert platform.machine() in run.attrs["platform"]
    assert 0 < run.attrs["seconds"] < 600
    assert run.attrs["format"] == FORMAT
    assert run.attrs["created"].endswith("+00:00")


def foreign(path):
    xarray.Dataset({"rain": ("day", [1.0, 2.0])}).to_netcdf(path, engine="h5netcdf")


def foreign_with_the_same_attributes(path):
    dataset = xarray.Dataset(attrs={"format": "CF-1.8", "experiment": "historical"})
    dataset.to_netcdf(path, engine="h5netcdf")


def not_netcdf(path):
    path.write_text("policy,accuracy\nefhc,0.8\n")


def empty(path):
    path.touch()


def missing(path):
    pass


def folder(path):
    path.mkdir()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (missing, "no such file"),
        (folder, "is a folder; give a file in it"),
        (empty, "cannot be read as netCDF"),
        (not_netcdf, "cannot be read as netCDF"),
        (foreign, "was not written by efhc"),
        (foreign_with_the_same_attributes, "was not written by efhc"),
    ],
)
def test_what_is_not_a_result_is_refused(tmp_path, make, message):
    path = tmp_path / "other.nc"
    make(path)
    with pytest.raises(efhc.DataError, match=f"other.nc: {message}"):
        efhc.load(path)


@pytest.mark.parametrize("share", [0.02, 0.5, 0.98])
def test_a_truncated_file_is_refused(run, tmp_path, share):
    path = efhc.save(run, tmp_path / "cut.nc")
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(efhc.DataError, match=r"cut.nc: is damaged \(it is truncated"):
        efhc.load(path)


def test_a_newer_format_is_refused(run, tmp_path):
    path = efhc.save(run.assign_attrs(format=FORMAT + 1), tmp_path / "new.nc")
    with pytest.raises(efhc.DataError, match=rf"new.nc: format {FORMAT + 1} .* newer .*upgrade"):
        efhc.load(path)


def test_an_error_while_writing_leaves_the_old_file(run, tmp_path, monkeypatch):
    path = efhc.save(run, tmp_path / "run.nc")
    before = path.read_bytes()

    def half(part, contents):
        part.open("wb").write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(OSError, match="No space left"):
        efhc.save(run.assign_attrs(seconds=99.0), path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.nc"]


def record(devices=2, evaluations=3, steps=4, start=0.0, **more):
    """A made-up record, every entry of which is known."""

    def numbers(*shape, dtype=np.float32):
        return (start + np.arange(np.prod(shape)).reshape(shape)).astype(dtype)

    return Record(
        bandwidth=numbers(devices),
        degree=numbers(devices, dtype=np.int32),
        iterations=np.arange(evaluations) * 2,
        evaluations={
            "accuracy": numbers(evaluations, devices),
            "test_loss": numbers(evaluations, devices),
            "mean_model_accuracy": numbers(evaluations),
            "consensus_error": numbers(evaluations),
            "broadcasts": numbers(evaluations, devices, dtype=np.int32),
        },
        steps={
            "links_used": numbers(steps, dtype=np.int32),
            "train_loss": numbers(steps),
            "transmission_time": numbers(steps),
            "new_links_used": numbers(steps, dtype=np.int32),
            "new_link_time": numbers(steps),
        },
        budgets={},
        **more,
    )


EXPERIMENT = efhc.Experiment(devices=2, iterations=4, eval_every=2)


def test_the_axes_of_a_sweep_come_first_in_their_order():
    records = [record(start=10.0 * place, seconds=0.25) for place in range(6)]
    axes = {"policy": ["efhc", "zt"], "seed": [3, 4, 5]}
    grid = sweep_dataset(EXPERIMENT, axes, records)
    assert grid.accuracy.dims == ("policy", "seed", "evaluation", "device")
    assert grid.links_used.dims == ("policy", "seed", "step")
    assert grid.bandwidth.dims == ("policy", "seed", "device")
    for place, (policy, seed) in enumerate((p, s) for p in ("efhc", "zt") for s in (3, 4, 5)):
        cell = grid.sel(policy=policy, seed=seed)
        np.testing.assert_array_equal(cell.accuracy, records[place].evaluations["accuracy"])
        np.testing.assert_array_equal(cell.links_used, records[place].steps["links_used"])
    assert grid.links_used.dtype == np.int32, "whole numbers stay whole where nothing is missing"
    assert (grid.diverged_at == -1).all()
    assert json.loads(grid.attrs["axes"]) == ["policy", "seed"]
    assert grid.attrs["seconds"] == 1.5


def test_a_run_that_diverged_is_filled_up():
    short = record(evaluations=2, steps=2, start=50.0, diverged_at=3, diverged=(1,))
    grid = sweep_dataset(EXPERIMENT, {"r": [1.0, 2.0]}, [short, record()])
    assert grid.iteration.values.tolist() == [0, 2, 4]
    assert grid.diverged_at.values.tolist() == [3, -1]
    np.testing.assert_array_equal(grid.train_loss[0], [50, 51, np.nan, np.nan])
    np.testing.assert_array_equal(grid.train_loss[1], [0, 1, 2, 3])
    np.testing.assert_array_equal(grid.accuracy[0], [[50, 51], [52, 53], [np.nan, np.nan]])
    np.testing.assert_array_equal(grid.links_used[0], [50, 51, np.nan, np.nan])
    np.testing.assert_array_equal(grid.broadcasts[0, 2], [np.nan, np.nan])
    assert not grid.accuracy[1].isnull().any()


def test_runs_with_fewer_devices_are_filled_up():
    records = [record(devices=1, start=7.0), record(devices=3)]
    grid = sweep_dataset(EXPERIMENT, {"devices": [1, 3]}, records)
    assert grid.device.values.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(grid.bandwidth[0], [7, np.nan, np.nan])
    np.testing.assert_array_equal(grid.degree[1], [0, 1, 2])
    np.testing.assert_array_equal(grid.accuracy[0, :, 0], [7, 8, 9])
    assert grid.accuracy[0, :, 1:].isnull().all()
    assert not grid.train_loss.isnull().any()


def test_large_whole_numbers_survive_the_filling_up():
    large = 2**24 + 1
    runs = [record(steps=2), record(steps=3)]
    runs[1].steps["links_used"][2] = large
    grid = sweep_dataset(EXPERIMENT, {"r": [1.0, 2.0]}, runs)
    assert int(grid.links_used[1, 2]) == large


def test_a_sweep_without_axes_is_a_run():
    one = record()
    grid = sweep_dataset(EXPERIMENT, {}, [one])
    run = run_dataset(EXPERIMENT, one)
    assert grid.drop_vars("diverged_at").equals(run)


def test_a_sweep_survives_its_file(tmp_path):
    short = record(evaluations=2, steps=2, diverged_at=3)
    axes = {"policy": ["efhc", "local"], "r": [0.5]}
    grid = sweep_dataset(EXPERIMENT, axes, [record(), short])
    assert efhc.load(efhc.save(grid, tmp_path / "sweep.nc")).equals(grid)


def test_file_names_tell_experiments_apart():
    stems = {file_stem(SMALL.replace(seed=seed, policy=p)) for seed in (0, 1) for p in ("gt", "zt")}
    assert len(stems) == 4
    assert file_stem(SMALL) == file_stem(SMALL.replace())
    assert file_stem(SMALL).startswith("efhc-svm-fashion_mnist-")


@pytest.mark.parametrize("name", ["accelerators", "begun_on"])
@pytest.mark.parametrize("value", ["x", 2.5, 0, 20_000])
def test_a_number_of_accelerators_is_checked(run, tmp_path, name, value):
    path = efhc.save(run.assign_attrs({name: value}), tmp_path / "run.nc")
    with pytest.raises(efhc.DataError, match=f"its attribute {name} is not a number of accelerators"):
        efhc.load(path)


def test_a_file_that_declares_more_than_it_can_hold_is_refused_unread(run, tmp_path, monkeypatch):
    """HDF5 keeps no room for what was never written: a few bytes may declare any size."""
    path = efhc.save(run, tmp_path / "run.nc")
    content = io.BytesIO(read_sealed(path))
    with h5py.File(content, "r+") as file:
        file.create_dataset("huge", (1500, 1000, 1000), "f4", chunks=(1, 1000, 1000))
    path.write_bytes(sealed(content.getbuffer()))
    with pytest.raises(efhc.DataError, match=r"declares 6\.0 GB, more than"):
        efhc.load(path)
