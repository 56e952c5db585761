"""Moving pictures of runs."""

import numpy as np
import pytest
from PIL import Image

import efhc_jax as efhc
from efhc_jax.cli import main
from efhc_jax.plotting.animation import _Scene, animate
from efhc_jax.results.activity import activity_of

BASE = efhc.Experiment(
    dataset="synthetic", devices=6, connectivity=0.6, iterations=40, eval_every=10, r=200.0
)


@pytest.fixture(scope="module")
def run():
    return efhc.simulate(BASE, audit=True, progress=False)


def pictures(path):
    with Image.open(path) as gif:
        found = []
        for frame in range(gif.n_frames):
            gif.seek(frame)
            found.append(np.asarray(gif.convert("RGB")).astype(int))
        return found


def orange(picture):
    """How many pixels have the colour of what is in use."""
    return int((np.abs(picture - (0xD5, 0x5E, 0x00)).sum(-1) < 40).sum())


def test_a_picture_for_each_iteration_in_which_links_light_up(run, tmp_path):
    path = animate(run, tmp_path / "run.gif", frames=1000)
    found = pictures(path)
    assert len(found) == 40
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.gif"]
    lit = np.array([orange(picture) for picture in found])
    links, fired = run.links_used.values, run.fired.values.sum(1)
    busy, idle = (links + fired).argmax(), (links + fired).argmin()
    assert links[busy] > links[idle]
    assert lit[busy] > 1.5 * lit[idle]


def test_long_runs_are_sampled_from_first_to_last(run, tmp_path):
    assert len(pictures(animate(run, tmp_path / "run.gif", frames=5))) == 5


def test_a_frame_says_of_which_iteration_its_accuracy_is(run):
    """The run is evaluated every ten iterations, after its last one as well."""
    scene = _Scene(run, activity_of(run))
    texts = []
    for iteration in (0, 9, 12, 39):
        scene.at(iteration)
        texts.append(scene._text.get_text())
    means = 100 * run.accuracy.mean("device").values
    assert texts == [
        f"iteration 1 of 40; mean accuracy after iteration 0: {means[0]:.1f} %",
        f"iteration 10 of 40; mean accuracy: {means[1]:.1f} %",
        f"iteration 13 of 40; mean accuracy after iteration 10: {means[1]:.1f} %",
        f"iteration 40 of 40; mean accuracy: {means[4]:.1f} %",
    ]


def test_devices_that_move_and_networks_that_change(tmp_path):
    moving = efhc.simulate(
        BASE.replace(dynamics=efhc.dynamics.Mobility(speed=0.1)), audit=True, progress=False
    )
    first, last = pictures(animate(moving, tmp_path / "run.gif", frames=2))
    assert (first != last).any()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["plain.nc"], "run it again with audit=True"),
        (["audited.nc", "--out", "run.png"], "out=run.png: give a file ending in .gif"),
        (["audited.nc", "--frames", "0"], "frames=0: give a whole number of 1 or more"),
        (["missing.nc"], "missing.nc: no such file"),
        (["audited.nc", "--select", "seed=1"], "select='seed': not an axis"),
    ],
)
def test_what_cannot_be_drawn_is_explained(run, tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    efhc.save(run, "audited.nc")
    efhc.save(run.drop_vars(["fired", "adjacency"]), "plain.nc")
    assert main(["animate", *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("efhc: error: ")
    assert message in error
    assert error.count("\n") == 1


def test_the_command_wants_one_run_of_a_sweep(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    grid = efhc.sweep(BASE, policy=["efhc", "zt"], seed=[0, 1], audit=True, progress=False)
    efhc.save(grid, "sweep.nc")
    assert main(["animate", "sweep.nc", "--select", "policy=zt"]) == 2
    assert "seed: the sweep has [0, 1]; choose one" in capsys.readouterr().err
    assert main(["animate", "sweep.nc", "--select", "policy=zt", "seed=1", "--frames", "3"]) == 0
    assert capsys.readouterr().out == "wrote sweep.gif\n"
    assert len(pictures("sweep.gif")) == 3
