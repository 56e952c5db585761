"""Verdicts: paired differences from EF-HC, corrected for their number."""

import json

import numpy as np
import pytest
import xarray
from scipy.stats import t

from efhc_jax.comparison.contenders import SIZES, Candidate
from efhc_jax.comparison.study import Study
from efhc_jax.comparison.verdicts import OPEN, as_json, as_markdown, rows_of

NAMES = ["efhc", "dpsgd", "choco", "tracking", "d2"]
SEEDS = 10
STUDY = Study("svm", SIZES["full"]["svm"]._replace(seeds=SEEDS), NAMES, data=None, out=None)
CHOICES = {name: [Candidate(name, 0, {"learning_rate": 0.1})] * 3 for name in NAMES} | {
    "efhc": [Candidate("efhc", 9, {"r": 1000.0, "learning_rate": 0.3})] * 3,
    "d2": [None] * 3,
}


@pytest.fixture(scope="module")
def rows():
    """The same accuracies for each criterion: two points better, worse, as good, and diverged."""
    rng = np.random.default_rng(0)
    shared = 70 + 5 * rng.normal(size=SEEDS)  # cancels in pairs
    noise = rng.normal(size=SEEDS)
    none = np.full(SEEDS, np.nan)
    each = [shared, shared + 2 + 0.1 * noise, shared - 2 + 0.1 * noise, shared + noise, none]
    found = xarray.DataArray(
        [each] * 3,
        dims=("criterion", "contender", "seed"),
        coords={"criterion": ["bits", "time", "gradients"], "contender": NAMES},
    )
    return rows_of(STUDY, CHOICES, found)


def of(rows, contender):
    return next(row for row in rows if row.contender == contender)


def test_pairs_decide_by_the_sign_of_the_corrected_interval(rows):
    verdicts = {name: of(rows, name).verdict for name in NAMES}
    assert verdicts == {
        "efhc": "",
        "dpsgd": "better",
        "choco": "worse",
        "tracking": OPEN,
        "d2": "10 of 10 seeds diverged",
    }


def test_intervals_are_corrected_for_all_contenders_and_criteria(rows):
    one = of(rows, "tracking")
    plain, corrected = one.high - one.difference, one.corrected_high - one.difference
    comparisons = 3 * (len(NAMES) - 1)
    quantiles = t.ppf([1 - 0.025, 1 - 0.025 / comparisons], SEEDS - 1)
    assert corrected / plain == pytest.approx(quantiles[1] / quantiles[0])
    assert one.corrected_high - one.difference == pytest.approx(one.difference - one.corrected_low)


def test_the_best_comes_first_and_the_diverged_last(rows):
    assert (rows[0].contender, rows[len(NAMES) - 1].contender) == ("dpsgd", "d2")
    assert len(rows) == 3 * len(NAMES)


def test_one_diverged_seed_leaves_no_verdict():
    values = np.full((3, 2, SEEDS), 70.0)
    values[:, 1] += np.arange(SEEDS) * 0.01 + 3
    values[:, 1, 4] = np.nan
    names = ["efhc", "dpsgd"]
    coords = {"criterion": ["bits", "time", "gradients"], "contender": names}
    found = xarray.DataArray(values, dims=("criterion", "contender", "seed"), coords=coords)
    row = of(rows_of(STUDY._replace(contenders=names), CHOICES, found), "dpsgd")
    assert (row.seeds, row.diverged, row.verdict) == (9, 1, "1 of 10 seeds diverged")
    assert row.low > 2.9


def test_tables_have_a_row_per_contender_and_mark_edges(rows):
    text = as_markdown(STUDY, rows)
    assert text.count("| EF-HC | r 1000\\*, step size 0.3 |") == 3
    assert "SVM within the bits of 300 rounds" in text
    assert "all 12 comparisons" in text
    assert "| CHOCO-SGD | `method=choco` | ratio 0.03, 0.1, 0.3; gamma 0.1, 0.3, 0.6, 1 |" in text


def test_what_programs_read_is_plain_json(rows):
    found = json.loads(json.dumps(as_json(STUDY, rows), allow_nan=False))
    diverged = [row for row in found["rows"] if row["contender"] == "d2"]
    assert [row["accuracy"] for row in diverged] == [None] * 3
    assert found["size"]["rounds"] == STUDY.size.rounds
