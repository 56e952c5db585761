"""Results of format 1, which earlier versions wrote: they load, plot and report as before."""

import json
from pathlib import Path

import pytest

import efhc_jax as efhc
from efhc_jax.cli import main
from efhc_jax.results.selection import setting_of

FILES = sorted((Path(__file__).parents[2] / "docs").rglob("*.nc"))
FIRST = [file for file in FILES if efhc.load(file).attrs["format"] == 1]


def test_there_are_some():
    assert len(FIRST) >= 4


@pytest.mark.parametrize("file", FIRST, ids=lambda file: file.name)
def test_its_settings_are_read(file):
    grid = efhc.load(file)
    experiment = setting_of(grid)
    former = json.loads(grid.attrs["experiment"])
    assert experiment.weak_fraction == former["heterogeneity"]
    assert experiment["learning_rate_schedule.exponent"] == former["learning_rate_decay"]
    assert experiment.given == {}


@pytest.mark.parametrize("file", FIRST, ids=lambda file: file.name)
def test_it_is_plotted_and_reported(file, tmp_path):
    axis = ["--x", "connectivity"] if "connectivity" in efhc.load(file).dims else []
    assert main(["plot", str(file), *axis, "--out", str(tmp_path / "figure.png")]) == 0
    assert main(["report", str(file), "--out", str(tmp_path / "report.html")]) == 0
    assert (tmp_path / "report.html").stat().st_size > 100_000


def test_former_names_of_axes_are_replaced(tmp_path):
    base = efhc.Experiment(dataset="synthetic", iterations=4, eval_every=2, dynamics="failures")
    axes = {"weak_fraction": [0.2, 0.4], "dynamics.up_probability": [0.5, 0.9], "seed": [0, 1]}
    grid = efhc.sweep(base, **axes)
    former = {"weak_fraction": "heterogeneity", "dynamics.up_probability": "link_up"}
    settings = json.loads(grid.attrs["experiment"])
    settings["heterogeneity"] = settings.pop("weak_fraction")
    settings["link_up"] = settings.pop("dynamics.up_probability")
    names = [former.get(axis, axis) for axis in json.loads(grid.attrs["axes"])]
    attributes = {"format": 1, "experiment": json.dumps(settings), "axes": json.dumps(names)}
    efhc.save(grid.rename(former).assign_attrs(attributes), tmp_path / "old.nc")
    read = efhc.load(tmp_path / "old.nc")
    assert read.drop_attrs().equals(grid.drop_attrs())
    assert json.loads(read.attrs["axes"]) == list(axes)
    assert efhc.verify(read).agrees
    assert (
        main(
            [
                "plot",
                str(tmp_path / "old.nc"),
                "--x",
                "weak_fraction",
                "--out",
                str(tmp_path / "a.png"),
                "--select",
                "dynamics.up_probability=0.5",
            ]
        )
        == 0
    )
