"""Data of the user's own: their name and digest stand wherever a result speaks of them."""

import json

import numpy as np
import pytest

import efhc_jax as efhc
from efhc_jax.data import DATASETS, check_own
from efhc_jax.plotting.figures import draw_curves, draw_run
from efhc_jax.report.page import write_report
from small import SMALL


@pytest.fixture(scope="module")
def run(tiny):
    return efhc.simulate(SMALL, tiny, audit=True, progress=False)


@pytest.fixture(scope="module")
def grid(tiny):
    return efhc.sweep(SMALL, tiny, progress=False, r=[40.0, 4000.0])


def test_a_result_has_the_name_and_digest_of_its_data(run, grid, tiny):
    for result in (run, grid):
        assert efhc.Experiment.from_json(result.attrs["experiment"]).dataset == "tiny"
        assert json.loads(result.attrs["data"]) == {"tiny": tiny.digest}


def test_figures_and_reports_are_titled_with_it(run, grid, tmp_path):
    assert "svm on tiny" in draw_run(run).get_suptitle()
    assert "svm on tiny" in draw_curves(grid.isel(r=0)).get_suptitle()
    efhc.save(run, tmp_path / "run.nc")
    page = write_report([tmp_path / "run.nc"], tmp_path / "report.html").read_text()
    assert "svm on tiny" in page
    assert "fashion_mnist" not in page
    assert '"command":"in Python, efhc_jax.simulate(' in page
    assert "the data 'tiny' (digest" in page


def test_it_is_verified_with_the_same_data_alone(run, tiny, tmp_path):
    stored = efhc.load(efhc.save(run, tmp_path / "run.nc"))
    assert efhc.verify(stored, tiny).agrees
    with pytest.raises(efhc.DataError, match="dataset='tiny': the data of this result .* not on this"):
        efhc.verify(stored)
    others = tiny._replace(train_images=255 - tiny.train_images)
    with pytest.raises(efhc.DataError, match="dataset='tiny': these data are not those of the result"):
        efhc.verify(stored, others)
    with pytest.raises(efhc.DataError, match="are not those of the result"):
        efhc.audit(stored, others)


def test_a_result_that_was_stored_under_another_name_is_not_run_on_that_one(run, tiny):
    """As results of own data once were."""
    settings = json.loads(run.attrs["experiment"]) | {"dataset": "synthetic"}
    old = run.assign_attrs(experiment=json.dumps(settings), data=json.dumps({"synthetic": tiny.digest}))
    with pytest.raises(efhc.DataError, match="dataset='synthetic': these data are not those"):
        efhc.verify(old)
    assert efhc.verify(old, tiny).agrees


def test_an_audit_without_the_data_says_so(run, tiny):
    unknown = [finding.figure for finding in efhc.audit(run) if "not on this machine" in finding.figure]
    assert unknown
    assert not [f for f in efhc.audit(run, tiny) if "not on this machine" in f.figure]


def test_nothing_goes_under_the_name_of_another_dataset(tiny):
    with pytest.raises(efhc.DataError, match="name='synthetic': these are not the samples of"):
        efhc.simulate(SMALL, tiny._replace(name="synthetic"))
    with pytest.raises(efhc.DataError, match="needs a name"):
        check_own(tiny._replace(name=""))
    assert check_own(efhc.load_dataset("synthetic")).name == "synthetic"


@pytest.mark.parametrize(
    "name",
    ["fashion_mnist_mini", "synthetic", pytest.param("fashion_mnist", marks=pytest.mark.full_data)],
)
def test_the_digests_of_the_packages_datasets(name):
    assert efhc.load_dataset(name).digest == DATASETS[name].digest


def test_a_dataset_has_the_name_that_it_is_loaded_by(tiny, monkeypatch):
    source = DATASETS["synthetic"]._replace(load=lambda: tiny, digest="")
    monkeypatch.setitem(DATASETS, "registered", source)
    assert efhc.load_dataset("registered").name == "registered"


def test_an_axis_of_datasets_and_data_do_not_go_together(tiny):
    with pytest.raises(efhc.ExperimentError, match="dataset: is an axis, but data are given"):
        efhc.sweep(SMALL, tiny, dataset=["synthetic", "fashion_mnist_mini"])


def test_what_is_no_dataset_is_refused():
    with pytest.raises(efhc.DataError, match="data: a tuple; give efhc_jax.Dataset"):
        efhc.simulate(SMALL, (np.zeros((4, 2, 2), np.uint8), np.zeros(4, np.int32)))


@pytest.mark.parametrize(
    ("labels", "said"),
    [(np.arange(1, 11), "numbered from 1 to 10 without 0"), (np.array([0, 1, 3]), "without 2;")],
)
def test_labels_that_leave_a_number_out_are_refused(labels, said):
    labels = np.tile(labels, 4).astype(np.int32)
    images = np.zeros((len(labels), 2, 2), np.uint8)
    with pytest.raises(efhc.DataError, match=said) as error:
        efhc.simulate(SMALL, efhc.Dataset("mine", images, labels, images, labels))
    assert "np.unique(labels, return_inverse=True)[1]" in str(error.value)
