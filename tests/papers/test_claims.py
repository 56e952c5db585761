"""Verdicts on the paper's claims, on sweeps whose differences are known."""

import json

import numpy as np
import pytest
import xarray

from efhc_jax.papers.efhc.claims import (
    FAILS,
    HOLDS,
    OPEN,
    Claim,
    advantage_at_equal_time,
    as_json,
    as_markdown,
    claims_of_connectivity,
    claims_of_curves,
)

POLICIES = ["efhc", "gt", "zt", "rg"]
SEEDS = 6
NOISE = np.random.default_rng(0).normal(0, 0.001, (4, SEEDS, 1, 1))
NOISE -= NOISE.mean(axis=1, keepdims=True)


def verdicts(claims):
    return {claim.statement: claim.verdict for claim in claims}


@pytest.fixture(scope="module")
def curves():
    """Accuracy after 0, 5 and 10 iterations, and what each of them costs."""
    final = np.array([0.70, 0.71, 0.715, 0.60])[:, None, None, None] + NOISE
    accuracy = final * np.array([0, 0.9, 1.0])[:, None]
    price = np.array([1.0, 1.5, 2.0, 0.9])
    return xarray.Dataset(
        {
            "accuracy": (("policy", "seed", "evaluation", "device"), accuracy),
            "transmission_time": (
                ("policy", "seed", "step"),
                np.broadcast_to(price[:, None, None], (4, SEEDS, 10)).copy(),
            ),
        },
        {"policy": POLICIES, "seed": range(SEEDS), "iteration": ("evaluation", [0, 5, 10])},
    )


@pytest.fixture(scope="module")
def connectivity():
    """Accuracy within the budget rises by 10 points a unit for EF-HC, 5 for GT, 0 for ZT, 20 for RG."""
    radius = np.array([0.2, 0.6, 1.0])
    rise = np.array([0.10, 0.05, 0.0, 0.20])[:, None, None]
    values = 0.5 + rise * radius[:, None] + NOISE[..., 0].transpose(0, 2, 1) * (1 + radius[:, None])
    return xarray.Dataset(
        {
            "accuracy_at_budget": (
                ("policy", "connectivity", "seed", "budget", "device"),
                values[..., None, None],
            )
        },
        {"policy": POLICIES, "connectivity": radius, "seed": range(SEEDS), "budget": [7.0]},
    )


def test_curves_that_are_as_the_paper_says(curves):
    found = verdicts(claims_of_curves("svm", curves))
    assert set(found.values()) == {HOLDS}
    assert "EF-HC transmits less per iteration than ZT" in found
    assert len(found) == 12


def test_a_claim_fails_where_the_opposite_is_seen(curves):
    swapped = curves.assign_coords(policy=["zt", "gt", "efhc", "rg"])
    found = verdicts(claims_of_curves("svm", swapped))
    assert found["EF-HC transmits less per iteration than ZT"] == FAILS
    assert found["ZT has higher accuracy per iteration than EF-HC"] == FAILS


def test_equal_time_is_the_time_that_both_have_spent(curves):
    """Evaluations are 5 apart in time for EF-HC and 10 for ZT, with straight lines between them."""
    quiet = curves.copy(deep=True)
    quiet["accuracy"] = (
        curves.accuracy.mean("seed").expand_dims(seed=curves.seed).transpose(*curves.accuracy.dims)
    )
    found = advantage_at_equal_time(quiet, "efhc", "zt")
    time = np.linspace(0, 10, 400)
    last = 100 * quiet.accuracy.isel(evaluation=-1, seed=0, device=0)
    ours = np.interp(time, [0, 5, 10], float(last.sel(policy="efhc")) * np.array([0, 0.9, 1]))
    theirs = np.interp(time, [0, 10, 20], float(last.sel(policy="zt")) * np.array([0, 0.9, 1]))
    np.testing.assert_allclose(found, np.mean(ours - theirs))


def test_slopes_over_connectivity(connectivity):
    claims = claims_of_connectivity("svm", connectivity)
    found = verdicts(claims)
    assert found["the accuracy of EF-HC grows with connectivity"] == HOLDS
    assert found["the accuracy of ZT grows with connectivity"] == OPEN
    assert found["EF-HC gains more per connectivity than GT"] == HOLDS
    assert found["EF-HC gains more per connectivity than RG"] == FAILS
    gains = next(claim for claim in claims if "than GT" in claim.statement)
    assert gains.difference == pytest.approx(5, abs=0.3)


def test_seeds_that_did_not_reach_the_budget_everywhere_are_left_out(connectivity):
    holed = connectivity.copy(deep=True)
    holed.accuracy_at_budget.loc[{"policy": "gt", "seed": 3, "connectivity": 0.2}] = np.nan
    seeds = {claim.statement: claim.seeds for claim in claims_of_connectivity("svm", holed)}
    assert seeds["the accuracy of GT grows with connectivity"] == SEEDS - 1
    assert seeds["EF-HC gains more per connectivity than GT"] == SEEDS - 1
    assert seeds["EF-HC gains more per connectivity than ZT"] == SEEDS


def test_a_claim_is_written_for_people_and_for_programs():
    claim = Claim("svm", "ii", "RG is lower", "points", 6.2, 5.0, float("nan"), 2.0, 1)
    assert claim.verdict == HOLDS
    assert "RG is lower (more than 2)" in as_markdown([claim])
    (row,) = json.loads(as_json([claim._replace(low=float("nan"))]))
    assert row["verdict"] == OPEN
    assert row["low"] is None
