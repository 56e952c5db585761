"""Graphs over time from files, and what is wrong with some of them."""

import networkx
import numpy as np
import pytest

from efhc_jax.errors import DataError
from efhc_jax.network.graph_files import read_graphs


def triangle():
    return ~np.eye(3, dtype=bool)


def test_numpy_files(tmp_path):
    graphs = np.stack([triangle(), triangle(), np.zeros((3, 3), bool), triangle()])
    np.save(tmp_path / "a.npy", graphs)
    np.savez(tmp_path / "a.npz", graphs.astype(np.int8))
    for name in ("a.npy", "a.npz"):
        found = read_graphs(tmp_path / name, 3)
        assert found.times.tolist() == [0, 2, 3], "only where something changes"
        assert [len(links) for links in found.links] == [3, 0, 3]
        assert len(read_graphs(tmp_path / name, 3, iterations=3).links) == 2
    np.save(tmp_path / "one.npy", triangle())
    assert read_graphs(tmp_path / "one.npy", 3).times.tolist() == [0]


def test_lines_with_times(tmp_path):
    path = tmp_path / "links.csv"
    path.write_text("# time, device, device\n0,0,1\n0,2,1\n0,1,2\n3,0,2  # later\n")
    found = read_graphs(path, 3)
    assert found.times.tolist() == [0, 3]
    assert [links.tolist() for links in found.links] == [[[0, 1], [1, 2]], [[0, 2]]]
    assert found.all_links().tolist() == [[0, 1], [0, 2], [1, 2]]
    path.write_text("2 0 1\n")
    assert [len(links) for links in read_graphs(path, 3).links] == [0, 1], "nothing before"


def test_lines_without_times_are_what_networkx_writes(tmp_path):
    networkx.write_edgelist(networkx.star_graph(3), tmp_path / "star.txt", data=False)
    found = read_graphs(tmp_path / "star.txt", 4)
    assert found.times.tolist() == [0]
    assert found.links[0].tolist() == [[0, 1], [0, 2], [0, 3]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0,0,x\n", "line 1: '0,0,x'; give device,device or time,device,device"),
        ("0 1 {}\n", "give device,device or time,device,device"),
        ("0,1\n0,1,2\n", "some lines have a time and some have none"),
        ("0,1,1\n", "line 1: '0,1,1'; a device is linked to itself"),
        ("0,0,1\n0,7,1\n", "line 2: '0,7,1'; devices are 0 to 2"),
        ("\n# nothing\n", "has no links"),
    ],
)
def test_lines_with_mistakes(tmp_path, text, message):
    path = tmp_path / "links.txt"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_graphs(path, 3)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 4, 4), bool), "has 4 devices, the experiment 3"),
        (np.zeros((2, 3, 4), bool), "has shape"),
        (np.eye(3, dtype=bool)[None], "linked to itself"),
        (np.triu(triangle())[None], "one way only"),
    ],
)
def test_arrays_with_mistakes(tmp_path, array, message):
    np.save(tmp_path / "bad.npy", array)
    with pytest.raises(DataError, match=message):
        read_graphs(tmp_path / "bad.npy", 3)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_graphs(tmp_path / "none.npy", 3)
    (tmp_path / "cut.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(DataError, match="cannot be read"):
        read_graphs(tmp_path / "cut.npy", 3)
    np.save(tmp_path / "pickle.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="cannot be read"):
        read_graphs(tmp_path / "pickle.npy", 3)


@pytest.mark.parametrize("ending", ["npy", "npz"])
def test_an_array_that_is_too_large_is_refused_unread(ending, tmp_path, monkeypatch):
    monkeypatch.setattr("efhc_jax.network.graph_files._MOST_BYTES", 10_000)
    path = tmp_path / f"zeros.{ending}"
    zeros = np.zeros((120, 10, 10), bool)
    np.save(path, zeros) if ending == "npy" else np.savez_compressed(path, zeros)
    monkeypatch.setattr(
        "efhc_jax.network.graph_files.np.load", lambda *a, **k: pytest.fail("it was read")
    )
    with pytest.raises(DataError, match="zeros.*too large|zeros.* takes .* GB; give the links as"):
        read_graphs(path, 10)
