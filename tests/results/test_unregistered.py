"""Results made with members that are not registered here: they are looked at, and not run."""

import pytest

import efhc_jax as efhc
from efhc_jax.cli import main
from efhc_jax.models.svm import svm
from efhc_jax.results.activity import activity_of
from efhc_jax.results.datasets import policy_of

BASE = efhc.Experiment(dataset="synthetic", devices=4, iterations=6, eval_every=3)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A run and a sweep with a policy, a model and a graph that are gone afterwards."""
    folder = tmp_path_factory.mktemp("stored")
    members = {
        "often": efhc.Policy(lambda now: now.coin < 0.5, uses_new_links=False),
        "always": efhc.Policy(lambda now: now.coin >= 0),
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, policy in members.items():
            patch.setitem(efhc.POLICIES, name, policy)
        patch.setitem(efhc.MODELS, "linear", svm)
        patch.setitem(efhc.GRAPHS, "loop", efhc.GRAPHS["ring"])
        mine = BASE.replace(policy="often", model="linear", graph="loop")
        efhc.save(efhc.simulate(mine, audit=True), folder / "run.nc")
        efhc.save(efhc.sweep(mine, policy=["often", "always"]), folder / "sweep.nc")
    return folder


@pytest.mark.parametrize("file", ["run.nc", "sweep.nc"])
def test_it_can_be_drawn_and_reported(file, stored, tmp_path):
    assert main(["plot", str(stored / file), "--out", str(tmp_path / "figure.png")]) == 0
    assert main(["report", str(stored / file), "--out", str(tmp_path / "report.html")]) == 0
    page = (tmp_path / "report.html").read_text()
    assert "the policy 'often', the " in page
    assert "the graph 'loop'" in page
    assert '"command":"efhc ' in page
    assert "--members FILE, where FILE registers the model 'linear'" in page


def test_it_can_be_animated_and_audited(stored, tmp_path):
    assert main(["animate", str(stored / "run.nc"), "--out", str(tmp_path / "run.gif")]) == 0
    assert main(["audit", str(stored / "run.nc")]) == 0


def test_what_is_known_of_its_policy_is_what_was_stored(stored):
    run = efhc.load(stored / "run.nc")
    assert policy_of(run)[1:3] == (False, False)
    counts = activity_of(run).used.sum(1)
    assert counts.tolist() == run.links_used.values.tolist()
    with pytest.raises(efhc.ExperimentError, match="not registered"):
        policy_of(run).fires(None)


@pytest.mark.parametrize("file", ["run.nc", "sweep.nc"])
def test_it_is_not_run_again_without_them(file, stored, capsys):
    assert main(["verify", str(stored / file)]) == 2
    assert "is not registered here; register it as it was" in capsys.readouterr().err


def test_a_folder_is_verified_whole(tmp_path, capsys):
    run = efhc.simulate(BASE)
    for name in ("one.nc", "two.nc"):
        efhc.save(run, tmp_path / name)
    assert main(["verify", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out.count("all bitwise equal") == 2
    run.train_loss[0] += 1
    efhc.save(run, tmp_path / "two.nc")
    assert main(["verify", str(tmp_path)]) == 1
