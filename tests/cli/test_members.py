"""Members of one's own on the command line, each in one file outside the package."""

import numpy as np
import pytest

import efhc_jax as efhc
from efhc_jax.cli import main

POLICY = """
from dataclasses import dataclass
import jax.numpy as jnp
import efhc_jax as efhc


@dataclass(frozen=True)
class Every:
    wait: int = efhc.parameter(3, "Iterations between broadcasts.", low=1)


def init(now, parameters):
    return jnp.zeros_like(now.broadcasts)


def fires(now, parameters, waited):
    fired = waited + 1 >= parameters.wait
    return fired, jnp.where(fired, 0, waited + 1)


efhc.POLICIES["every"] = efhc.Policy(fires, parameters=Every, init=init, uses=())
"""

DYNAMICS = """
from dataclasses import dataclass
import efhc_jax as efhc
from efhc_jax.network.dynamics.base import with_links


@dataclass(frozen=True)
class Late:
    start: int = efhc.parameter(5, "Iteration of the first link.", low=0)


def at(network, parameters, memory, iteration):
    return with_links(network, network.adjacency & (iteration >= parameters.start)), memory


efhc.DYNAMICS["late"] = efhc.Dynamics(at, parameters=Late)
"""

SMALL = [
    "--dataset",
    "synthetic",
    "--devices",
    "4",
    "--connectivity",
    "0.8",
    "--iterations",
    "12",
    "--eval-every",
    "6",
]


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """The two files, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.py").write_text(POLICY)
    (tmp_path / "dynamics.py").write_text(DYNAMICS)


def test_a_policy_with_memory_is_swept_over_its_parameter(capsys):
    words = [
        "--members",
        "policy.py",
        "--policy",
        "every",
        "zt",
        "--policy.wait",
        "2",
        "3",
        "--seeds",
        "2",
        "--out",
        "out",
    ]
    assert main(["sweep", *SMALL, *words]) == 0
    assert "1 compilation" in capsys.readouterr().out
    grid = efhc.load("out/sweep.nc")
    assert grid["policy.wait"].values.tolist() == [2, 3]
    sent = grid.broadcasts.isel(evaluation=-1, seed=0, device=0)
    assert sent.sel({"policy": "every"}).values.tolist() == [6, 4]
    assert sent.sel({"policy": "zt"}).values.tolist() == [12, 12]


def test_dynamics_are_run_and_swept_over_their_parameter():
    words = ["--members", "dynamics.py", "--dynamics", "late", "--policy", "zt"]
    assert main(["run", *SMALL, *words, "--dynamics.start", "7", "--out", "one"]) == 0
    assert main(["sweep", *SMALL, *words, "--dynamics.start", "0", "7", "--out", "out"]) == 0
    grid = efhc.load("out/sweep.nc")
    used = grid.links_used.sel({"dynamics.start": 7}).values
    assert (used[:7] == 0).all()
    assert (used[7:] > 0).all()
    (path,) = efhc.storage.netcdf.result_files(["one"])
    np.testing.assert_array_equal(efhc.load(path).links_used, used)


def test_several_files_and_a_table_of_a_config():
    with open("study.toml", "w") as file:
        file.write('[policy]\nname = "every"\nwait = [2, 4]\n[dynamics]\nname = "late"\nstart = 3\n')
    words = ["--members", "policy.py", "dynamics.py", "--config", "study.toml", "--out", "out"]
    assert main(["sweep", *SMALL, *words]) == 0
    grid = efhc.load("out/sweep.nc")
    assert grid["policy.wait"].values.tolist() == [2, 4]
    assert (grid.links_used.isel(step=slice(3)) == 0).all()


def test_its_parameters_are_in_the_help(capsys):
    with pytest.raises(SystemExit):
        main(["run", "--members", "policy.py", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "--policy.wait INT" in shown
    assert "Registered: every." in shown
    assert "(every; default: 3)" in shown


def test_results_are_verified_with_the_file_and_not_without():
    words = ["--members", "policy.py", "--policy", "every", "--out", "out"]
    assert main(["run", *SMALL, *words]) == 0
    assert main(["verify", "out", "--members", "policy.py"]) == 0
    del efhc.POLICIES["every"]
    assert main(["verify", "out"]) == 2


def test_a_changed_file_is_noticed(capsys):
    words = ["--members", "policy.py", "--policy", "every", "--seeds", "3", "--out", "out"]
    assert main(["sweep", *SMALL, *words]) == 0
    with open("policy.py", "w") as file:
        file.write(POLICY.replace("waited + 1 >= parameters.wait", "waited + 2 >= parameters.wait"))
    (efhc.storage.netcdf.Path("out") / "sweep.nc").unlink()
    assert main(["sweep", *SMALL, *words]) == 2
    assert "the code of the policy 'every' is different" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("import nothing_of_this_name", "members=bad.py: cannot be run (ModuleNotFoundError: No module"),
        ("1 / 0", "members=bad.py: cannot be run (ZeroDivisionError: division by zero)"),
        ("def (", "members=bad.py: cannot be run (SyntaxError"),
        (None, "members=bad.py: no such file"),
    ],
)
def test_a_file_that_cannot_be_run(content, said, capsys, tmp_path):
    if content is not None:
        (tmp_path / "bad.py").write_text(content)
    assert main(["run", *SMALL, "--members", "bad.py", "--out", "out"]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_parameter_without_its_file_is_named(capsys):
    assert main(["run", *SMALL, "--policy.wait", "3"]) == 2
    said = capsys.readouterr().err
    assert "policy.wait: no registered policy has this parameter" in said
    assert "--members FILE" in said
