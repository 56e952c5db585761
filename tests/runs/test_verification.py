"""A stored result, run again: agreement to the bit, or where it ends."""

import jax
import numpy as np
import pytest

import efhc_jax as efhc
from efhc_jax.cli import main
from efhc_jax.runs.verification import verify

SMALL = efhc.Experiment(dataset="synthetic", devices=4, iterations=6, eval_every=3)


@pytest.fixture(scope="module")
def run():
    return efhc.simulate(SMALL, audit=True, progress=False)


@pytest.fixture(scope="module")
def grid():
    return efhc.sweep(
        SMALL, progress=False, runs_at_once=jax.device_count(), policy=["efhc", "zt"], r=[5.0, 50.0]
    )


def test_a_run_agrees(run):
    found = verify(run)
    assert found.agrees
    assert (found.runs, found.of) == (1, 1)
    assert found.values == sum(run[name].size for name in [*run, *run.coords])
    assert found.circumstances == []


def test_a_sweep_agrees_in_whole_and_in_part(grid):
    found = verify(grid)
    assert found.agrees
    assert (found.runs, found.of) == (4, 4)
    some = verify(grid, runs=1)
    assert some.agrees
    assert some.runs == jax.device_count()
    assert some.of == 4


def test_what_was_selected_of_a_sweep_agrees(grid, tmp_path):
    part = efhc.load(efhc.save(grid.sel(policy="zt"), tmp_path / "part.nc"))
    assert verify(part).agrees
    assert verify(part).of == 2
    one = efhc.load(efhc.save(grid.sel(policy="efhc", r=5.0), tmp_path / "one.nc"))
    assert verify(one).agrees
    assert verify(one).of == 1


def test_the_first_difference_is_found(run):
    changed = run.copy(deep=True)
    changed.train_loss.values[4] += 1e-6
    changed.fired.values[2, 3] ^= True
    changed.accuracy.values[1:, 2] += 0.5
    found = verify(changed)
    assert not found.agrees
    first, second, third = found.differences
    assert (first.variable, first.iteration, first.device) == ("accuracy", 3, 2)
    assert first.stored == pytest.approx(first.again + 0.5)
    assert first.entries == 2
    assert first.largest == pytest.approx(0.5)
    assert (second.variable, second.iteration, second.device) == ("fired", 3, 3)
    assert (third.variable, third.iteration, third.device) == ("train_loss", 5, None)
    assert third.largest == pytest.approx(1e-6, rel=0.2)


def test_a_difference_in_a_sweep_has_its_run(grid):
    changed = grid.copy(deep=True)
    changed.links_used.values[1, 0, 5] += 1
    (found,) = verify(changed).differences
    assert (found.variable, found.run, found.iteration) == ("links_used", "policy zt, r 5.0", 6)


def test_a_zero_with_another_sign_is_another_bit(run):
    changed = run.copy(deep=True)
    assert changed.new_link_time.values[0] == 0
    changed.new_link_time.values[0] = -0.0
    (found,) = verify(changed).differences
    assert found.variable == "new_link_time"


def test_what_was_cut_off_is_a_difference(run):
    shorter = run.isel(step=slice(0, 4), evaluation=slice(0, 2))
    names = {found.variable for found in verify(shorter).differences}
    assert {"train_loss", "accuracy"} <= names
    assert all(np.isnan(found.stored) for found in verify(shorter).differences)


def test_a_run_that_diverged_agrees():
    wild = SMALL.replace(learning_rate=1e25, learning_rate_schedule="constant", model="quadratic")
    with pytest.raises(efhc.DivergedError) as caught:
        efhc.simulate(wild, progress=False)
    assert verify(caught.value.result).agrees


def test_64_bits_are_run_in_64_bits(x64):
    stored = efhc.simulate(SMALL, progress=False)
    assert stored.train_loss.dtype == np.float64
    with jax.enable_x64(False):
        assert verify(stored).agrees


def test_circumstances_are_named(run):
    elsewhere = run.assign_attrs(
        python="3.99.0", versions=run.attrs["versions"].replace('"jax": "', '"jax": "9')
    )
    found = verify(elsewhere)
    assert found.agrees
    python, jax_version = sorted(found.circumstances, key=len)
    assert "jax was 9" in python + jax_version
    assert "python was 3.99.0 and is" in python + jax_version


def test_arguments_without_effect_are_refused(run, tiny):
    with pytest.raises(efhc.ExperimentError, match="runs=3: has no effect on a single run"):
        verify(run, tiny, runs=3)


def test_no_data_for_a_sweep_over_datasets(tiny):
    base = efhc.Experiment(iterations=2, eval_every=2, dataset="synthetic")
    grid = efhc.sweep(base, dataset=["synthetic", "fashion_mnist_mini"])
    with pytest.raises(efhc.ExperimentError, match="the sweep has several datasets"):
        verify(grid, tiny)


@pytest.mark.parametrize("changed", [False, True])
def test_the_command(run, tmp_path, capsys, changed):
    run = run.copy(deep=True)
    if changed:
        run.accuracy.values[1, 2] += 0.25
    path = efhc.save(run, tmp_path / "run.nc")
    assert main(["verify", str(path)]) == int(changed)
    shown = capsys.readouterr().out
    assert shown.startswith("does not agree: the run" if changed else "agrees: the run")
    assert ("accuracy: first at iteration 3, device 2: " in shown) == changed


def test_a_result_that_does_not_name_its_samples_says_so(run):
    del (old := run.copy()).attrs["data"]
    assert verify(old).circumstances == ["the result does not record its data"]


@pytest.mark.parametrize("words", [["none.nc"], ["none"], ["run.nc", "--runs", "0"]])
def test_the_command_where_nothing_can_be_run(run, tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    efhc.save(run, tmp_path / "run.nc")
    assert main(["verify", *words]) == 2
    assert capsys.readouterr().err.startswith("efhc: error: ")


def test_the_cores_of_a_cpu_are_called_so(grid):
    found = verify(grid.assign_attrs(accelerators=jax.device_count() + 1))
    (line,) = found.circumstances
    assert line.startswith(f"hardware was {jax.device_count() + 1} CPU cores and is now ")


def test_coordinates_are_compared_too(run):
    for name in ("iteration", "device"):
        other = run.assign_coords({name: (run[name].dims, run[name].values + 1)})
        found = verify(other)
        assert not found.agrees
        assert name in {one.variable for one in found.differences}


def test_budgets_are_compared_too():
    run = efhc.simulate(SMALL.replace(budgets=(0.5, 1.0)), progress=False)
    assert verify(run).agrees
    assert not verify(run.assign_coords(budget=[0.5, 2.0])).agrees


def test_a_variable_that_is_gone_is_not_the_same(run, grid):
    found = verify(run.drop_vars("global_loss"))
    assert not found.agrees
    assert found.unmatched == ["global_loss is in only one of the two"]
    assert not verify(run.assign(extra=run.train_loss)).agrees
    assert not verify(grid.drop_vars("test_loss")).agrees


def test_a_variable_of_another_type_is_not_the_same(run):
    found = verify(run.assign(accuracy=run.accuracy.astype(np.float64)))
    assert found.unmatched == ["accuracy is stored as float64 and is now float32"]


def test_attributes_that_say_something_else_are_not_the_same(run):
    changed = run.attrs["policies"].replace("true", "false")
    (said,) = verify(run.assign_attrs(policies=changed)).unmatched
    assert "the attribute policies says" in said


def test_a_sweep_with_runs_of_several_lengths_agrees():
    grid = efhc.sweep(SMALL, progress=False, devices=[3, 4])
    assert verify(grid).agrees


def test_impossible_hardware_is_refused(run, tmp_path):
    path = efhc.save(run.assign_attrs(accelerators=20_000), tmp_path / "run.nc")
    with pytest.raises(
        efhc.DataError, match="its attribute accelerators is not a number of accelerators"
    ):
        efhc.load(path)
