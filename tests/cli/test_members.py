"""Members of one's own on the command line, each in one file outside the package."""

import importlib
import sys

import numpy as np
import pytest

import efhc_jax as efhc
from efhc_jax.cli import main
from efhc_jax.cli.members import load_file

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


def test_sweeps_are_plotted_and_reported_without_the_file(capsys):
    words = [
        "--members",
        "policy.py",
        "--policy",
        "zt",
        "every",
        "--policy.wait",
        "2",
        "3",
        "--out",
        "out",
    ]
    assert main(["sweep", *SMALL, *words]) == 0
    del efhc.POLICIES["every"]
    assert main(["report", "out", "--out", "report.html"]) == 0
    with open("report.html") as file:
        page = file.read()
    assert "--policy.wait 2 3 --members FILE, where FILE registers the policy 'every'" in page
    plot = ["plot", "out/sweep.nc", "--out", "a.png"]
    assert main([*plot, "--select", "policy.wait=2"]) == 0
    assert main([*plot, "--x", "policy.wait"]) == 0
    grid = efhc.load("out/sweep.nc")
    assert '"every": {"parameters": {"wait": 3}, "code": "' in grid.attrs["members"].replace("2", "3")


def test_other_defaults_or_code_are_named_by_verify(capsys):
    words = ["--members", "policy.py", "--policy", "zt", "every", "--out", "out"]
    assert main(["sweep", *SMALL, *words]) == 0
    with open("policy.py", "w") as file:
        file.write(
            POLICY.replace("wait: int", "pause: int").replace("parameters.wait", "parameters.pause")
        )
    assert main(["verify", "out", "--members", "policy.py"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "the code of policy='every' is not that of the result" in said


def test_a_member_that_replaces_one_of_the_package_is_another_run():
    assert main(["run", *SMALL, "--policy", "zt", "--out", "out"]) == 0
    with open("policy.py", "a") as file:
        file.write('efhc.POLICIES["zt"] = efhc.Policy(lambda now: now.coin < 0.5, uses=())\n')
    before = efhc.POLICIES["zt"]
    try:
        words = ["--members", "policy.py", "--policy", "zt", "--out", "out"]
        assert main(["run", *SMALL, *words]) == 0
    finally:
        efhc.POLICIES["zt"] = before
    assert len(efhc.storage.netcdf.result_files(["out"])) == 2


def test_files_next_to_it_are_imported_and_part_of_its_code(tmp_path):
    from efhc_jax.storage.code_digests import code_digest

    digests = []
    for body in ("now.coin < 0.5", "now.coin < 0.4"):
        (tmp_path / "beside_members.py").write_text(f"def fires(now):\n    return {body}\n")
        (tmp_path / "mine.py").write_text(
            "import efhc_jax as efhc\nfrom beside_members import fires\n"
            "efhc.POLICIES['beside'] = efhc.Policy(lambda now: fires(now), uses=())\n"
        )
        sys.modules.pop("beside_members", None)
        importlib.invalidate_caches()
        load_file(tmp_path / "mine.py")
        digests.append(code_digest(efhc.POLICIES["beside"]))
    assert digests[0] != digests[1]


def test_members_may_differ_in_the_type_of_a_parameter(tmp_path):
    (tmp_path / "types.py").write_text(
        POLICY.replace("Every", "Other")
        .replace('"every"', '"other"')
        .replace("wait: int", "wait: float")
        + "\n\n@dataclass(frozen=True)\nclass Rate:\n    rate: int = 3\n"
        'efhc.POLICIES["third"] = efhc.Policy(fires, parameters=Rate, init=init, uses=())\n'
    )
    files = ["--members", "policy.py", "types.py"]
    for policy, wait in (("every", "2"), ("other", "2.5")):
        words = ["--policy", policy, "--policy.wait", wait, "--out", policy]
        assert main(["run", *SMALL, *files, *words]) == 0
        (path,) = efhc.storage.netcdf.result_files([policy])
        stored = efhc.Experiment.from_json(efhc.load(path).attrs["experiment"])
        assert stored["policy.wait"] == float(wait)
    words = ["--policy", "adaptive", "--policy.rate", "0.3", "0.5", "--out", "own"]
    assert main(["sweep", *SMALL, *files, *words]) == 0


def test_a_table_of_a_config_may_need_a_flag(capsys):
    with open("study.toml", "w") as file:
        file.write("[policy]\nwait = 2\n")
    words = ["--members", "policy.py", "--config", "study.toml", "--out", "out"]
    assert main(["run", *SMALL, *words, "--policy", "every"]) == 0
    assert main(["run", *SMALL, *words]) == 2
    assert (
        "config=study.toml: policy.wait=2: has no effect with policy='efhc'" in capsys.readouterr().err
    )


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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["verify", "--members", "policy.py", "out.nc"], "members=out.nc: is not a Python file"),
        (["run", "--members"], "members: no file; give one or more"),
        (["run", "--members", "--r", "5"], "members: no file; give one or more"),
    ],
)
def test_what_is_no_file_of_members(words, said, capsys):
    assert main(words) == 2
    assert said in capsys.readouterr().err
