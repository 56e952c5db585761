"""A file is what was sealed, or it is refused before anybody tries to make sense of it."""

import pytest
import xarray

import efhc_jax as efhc
from efhc_jax.disk.seals import read_sealed, sealed
from efhc_jax.results.validity import first_defect
from efhc_jax.results.variables import DIMENSIONS


@pytest.fixture(scope="module")
def run(tiny):
    experiment = efhc.Experiment(dataset="synthetic", devices=4, iterations=6, eval_every=3, split="iid")
    return efhc.simulate(experiment, tiny, progress=False)


def test_what_was_sealed_comes_back(tmp_path):
    (tmp_path / "file").write_bytes(sealed(b"content"))
    assert read_sealed(tmp_path / "file") == b"content"


@pytest.mark.parametrize("place", [0, 3, 6, -1, -5])
def test_one_other_bit_is_noticed(tmp_path, place):
    content = bytearray(sealed(b"content"))
    content[place] ^= 4
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(efhc.DataError, match="file: is damaged"):
        read_sealed(tmp_path / "file")


def test_a_result_without_its_seal_is_damaged_and_not_somebody_elses(run, tmp_path):
    path = efhc.save(run, tmp_path / "run.nc")
    for less in (1, 5, 20, 30, 200):
        path.write_bytes(path.read_bytes()[:-less])
        with pytest.raises(efhc.DataError, match=r"run.nc: is damaged"):
            efhc.load(path)
        efhc.save(run, path)


def test_other_programs_read_and_write_these_files(run, tmp_path):
    path = efhc.save(run, tmp_path / "run.nc")
    with xarray.open_dataset(path) as opened:
        opened.load()
    opened.to_netcdf(tmp_path / "again.nc", engine="h5netcdf")
    assert efhc.load(tmp_path / "again.nc").equals(run)


def test_a_run_is_in_order(run):
    assert first_defect(run, DIMENSIONS) == ""


@pytest.mark.parametrize(
    ("alter", "word"),
    [
        (lambda run: run.drop_vars("accuracy"), "accuracy"),
        (lambda run: run.assign(fired=run.broadcasts), "adjacency"),
        (lambda run: run.assign(bandwidth=run.bandwidth * float("nan")), "bandwidth"),
        (lambda run: run.transpose("device", ...), "dimensions"),
        (lambda run: run.assign_attrs(experiment="{"), "experiment"),
        (lambda run: run.assign_attrs(versions="[]"), "versions"),
        (lambda run: run.assign_attrs(data="1"), "data"),
        (lambda run: run.assign_attrs(created=3), "created"),
        (lambda run: run.assign_attrs(batch=-1), "batch"),
        (lambda run: run.assign_attrs(axes='["r"]'), "axis r"),
        (lambda run: run.isel(device=slice(0)), "empty"),
        (lambda run: run.isel(step=slice(2)), "impossible times"),
        (lambda run: run.drop_vars("iteration"), "evaluations are missing"),
        (lambda run: run.assign(train_loss=run.train_loss.astype(str)), "numbers"),
        (lambda run: run.assign(diverged_at=((), float("inf"))), "diverged_at"),
    ],
)
def test_what_no_result_has_is_named(run, tmp_path, alter, word):
    path = efhc.save(alter(run), tmp_path / "odd.nc")
    with pytest.raises(efhc.DataError, match=rf"odd.nc: is damaged \(.*{word}"):
        efhc.load(path)
