"""Whatever is given: an answer or a clear refusal, in time, without a traceback or half a file."""

import os
import re
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import efhc_jax as efhc
import fuzzing
from efhc_jax.data.npz import read_npz
from efhc_jax.network.graph_files import read_graphs
from efhc_jax.storage.sweep_folder import Store

ASKED = os.environ.get("EFHC_FUZZ_INPUTS")  # by `scripts/fuzz`, for each test


def inputs(count):
    """So many inputs, the same ones every time; as many as asked for and always others at night."""
    return settings(
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
        deadline=None,
        max_examples=int(ASKED or count),
        derandomize=not ASKED,
        database=None,
        phases=[Phase.generate],  # what fails is small as it is
    )


@pytest.fixture
def where(tmp_path, monkeypatch):
    fuzzing.stop_before_simulating(monkeypatch)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def fresh():
        return Path(tempfile.mkdtemp(dir=tmp_path))

    return fresh


@pytest.fixture(scope="module")
def run():
    return efhc.simulate(fuzzing.SMALL, audit=True, progress=False)


@pytest.fixture(scope="module")
def grid():
    return efhc.sweep(fuzzing.SMALL, progress=False, policy=["efhc", "zt"], r=[5.0, 50.0])


@pytest.fixture(scope="module")
def stored(run, grid, tmp_path_factory):
    """What the files of both hold."""
    folder = tmp_path_factory.mktemp("stored")
    results = {"run": run, "grid": grid}
    return {name: efhc.save(one, folder / f"{name}.nc").read_bytes() for name, one in results.items()}


@inputs(80)
@given(words=fuzzing.command_lines())
def test_any_command_line(where, words):
    folder = where()
    fuzzing.note("command line", *fuzzing.call(words, folder))


@inputs(80)
@given(content=fuzzing.TOML, command=st.sampled_from(["run", "sweep"]))
def test_any_config(where, content, command):
    folder = where()
    (folder / "my.toml").write_bytes(content)
    words = [command, "--config", "my.toml", "--dataset", "synthetic"]
    fuzzing.note("TOML", *fuzzing.call(words, folder))


@inputs(80)
@given(data=st.data(), which=st.sampled_from(["run", "grid"]))
def test_any_damaged_result(where, stored, data, which):
    path = where() / "result.nc"
    before = stored[which]
    after = fuzzing.damaged(before, data.draw(fuzzing.damage(len(before))))
    path.write_bytes(after)
    if after == before:
        efhc.load(path)
        fuzzing.OUTCOMES["damaged result: not changed"] += 1
        return
    with pytest.raises(efhc.DataError, match=re.escape(str(path))):
        efhc.load(path)
    fuzzing.OUTCOMES["damaged result: refused"] += 1


@inputs(40)
@given(data=st.data(), which=st.sampled_from(["run", "grid"]))
def test_any_result_that_is_put_together_wrongly(where, run, grid, data, which):
    folder = where()
    dataset = data.draw(fuzzing.altered(run if which == "run" else grid))
    path = efhc.save(dataset, folder / "result.nc")
    fuzzing.use(data.draw(fuzzing.READERS), path, folder)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoint") / "whole"
    fuzzing.make_checkpoint(folder)
    return folder


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@inputs(40)
@given(data=st.data())
def test_any_damaged_checkpoint(where, checkpoint, data):
    folder = where() / "copy"
    shutil.copytree(checkpoint, folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    path = data.draw(st.sampled_from(files))
    content = path.read_bytes()
    path.write_bytes(fuzzing.damaged(content, data.draw(fuzzing.damage(len(content)))))
    fuzzing.OUTCOMES[f"damaged checkpoint: {fuzzing.read_checkpoint(folder)}"] += 1


def broken_header(path):
    """What NumPy's own reader of headers stumbles over."""
    header = b"{'descr': '|b1', 'fortran_order': False, 'shape': ("
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    return path


def test_a_broken_array_is_refused_by_all_who_read_arrays(tmp_path):
    (tmp_path / "batches").mkdir()
    with pytest.raises(efhc.DataError, match="cannot be read"):
        read_graphs(broken_header(tmp_path / "graphs.npy"), 4, 5)
    with pytest.raises(efhc.DataError, match="cannot be read"):
        read_npz(broken_header(tmp_path / "data.npz"))
    broken_header(tmp_path / "batches" / "00000.npz")
    with pytest.raises(efhc.DataError, match="cannot be read"):
        Store(tmp_path).load(0)


def test_no_pickle_is_ever_loaded(tmp_path):
    """An array of objects would run whatever its maker wanted."""
    np.save(tmp_path / "graphs.npy", np.array([print], object), allow_pickle=True)
    np.savez(tmp_path / "data.npz", train_images=np.array([print], object))
    (tmp_path / "batches").mkdir()
    np.savez(tmp_path / "batches" / "00000.npz", runs=np.array([print], object))
    with pytest.raises(efhc.DataError, match="cannot be read"):
        read_graphs(tmp_path / "graphs.npy", 4, 5)
    with pytest.raises(efhc.DataError, match="cannot be read"):
        read_npz(tmp_path / "data.npz")
    with pytest.raises(efhc.DataError, match="cannot be read"):
        Store(tmp_path).load(0)
    for path in Path(efhc.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"^\s*(import|from) (pickle|cloudpickle|dill|joblib|shelve)", text, re.M), (
            path
        )
        assert "allow_pickle=True" not in text, path
