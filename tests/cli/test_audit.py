"""Networks from files and the audit, as typed on the command line."""

from pathlib import Path

import networkx
import pytest

import efhc_jax as efhc
from efhc_jax.cli import main

DATA = Path(__file__).parents[1] / "support"
SHORT = ["--dataset", "synthetic", "--model", "quadratic", "--iterations", "25", "--eval-every", "5"]

KEPT_FOR_AUDITS = ["adjacency", "fired", "gradient_norm", "largest_gradient", "global_loss"]


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """A run over a ring of ten devices whose links take turns, two in each of five iterations."""
    folder = tmp_path_factory.mktemp("audited")
    words = ["run", *SHORT, "--dynamics", "trace", "--graph-file", str(DATA / "turns.npz"), "--audit"]
    assert main([*words, "--out", str(folder)]) == 0
    [file] = folder.glob("*.nc")
    return file


def test_the_audit_of_a_stored_run(audited, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    picture = tmp_path / "curves.png"
    assert main(["audit", str(audited), "--out", str(picture)]) == 0
    shown = capsys.readouterr().out
    for words in (
        "η = ",
        "outside its Theorem 1",
        "B1 = 5 over 25 iterations",
        "device by device",
        "(l+2)·B1 = ",
        "γ/α is 1 at k = 0 and goes to 1",
        "consensus error (Theorem 1a)",
        "optimality gap F(w̄) − F* (Theorem 1b)",
        "falling like k^-",
    ):
        assert words in shown
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_audited(audited, tmp_path, capsys):
    plain = efhc.save(efhc.load(audited).drop_vars(KEPT_FOR_AUDITS), tmp_path / "plain.nc")
    for words, message in [
        ([plain], "run it again with audit=True"),
        ([tmp_path / "none.nc"], "no such file"),
        ([audited, "--out", tmp_path / "picture.txt"], "give a file ending in .png, .pdf or .svg"),
    ]:
        assert main(["audit", *map(str, words)]) == 2
        assert message in capsys.readouterr().err


def test_lines_of_a_file_over_time(tmp_path):
    words = ["run", *SHORT, "--dynamics", "trace", "--graph-file", str(DATA / "links.csv")]
    assert main([*words, "--iterations", "60", "--trace", "--out", str(tmp_path)]) == 0
    [file] = tmp_path.glob("*.nc")
    links = efhc.load(file).adjacency.values.sum((1, 2)) // 2
    assert links.tolist() == [9] * 20 + [8] * 20 + [10] * 20, "a chain, two islands, a ring"


def test_a_networkx_graph_from_a_file_with_links_that_fail(tmp_path, capsys):
    networkx.write_edgelist(networkx.petersen_graph(), tmp_path / "petersen.txt", data=False)
    file = ["--graph", "file", "--graph-file", str(tmp_path / "petersen.txt")]
    words = ["run", *SHORT, *file, "--dynamics", "failures"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    [stored] = (tmp_path / "out").glob("*.nc")
    assert efhc.load(stored).degree.values.tolist() == [3] * 10
    more = [*words, "--devices", "12", "--out", str(tmp_path / "more")]
    assert main(more) == 2
    assert "its 3 components have 10, 1, 1 devices, and device 10 is not" in capsys.readouterr().err
    assert main([*more, "--allow-disconnected"]) == 0
    assert main([*words, "--devices", "9", "--out", str(tmp_path / "fewer")]) == 2
    assert "devices are 0 to 8" in capsys.readouterr().err
