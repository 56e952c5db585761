"""Intervals and paired differences against SciPy, and what cannot be answered is said."""

import functools

import numpy as np
import pytest
import scipy.stats
import xarray

import efhc_jax as efhc
from efhc_jax.results.statistics import Interval, check_dimension, per_run


def samples(seeds=6, others=3, seed=0):
    values = np.random.default_rng(seed).normal(5.0, 2.0, (others, seeds))
    return xarray.DataArray(values, dims=("r", "seed"), coords={"r": np.arange(others)})


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.99])
@pytest.mark.parametrize("seeds", [2, 6, 40])
def test_student_is_what_scipy_says(confidence, seeds):
    values = samples(seeds)
    found = efhc.interval(values, confidence=confidence)
    assert found.mean.dims == found.low.dims == found.high.dims == ("r",)
    for row in range(3):
        low, high = scipy.stats.t.interval(
            confidence, seeds - 1, values[row].mean(), scipy.stats.sem(values[row])
        )
        assert float(found.mean[row]) == pytest.approx(values.values[row].mean())
        assert float(found.low[row]) == pytest.approx(low)
        assert float(found.high[row]) == pytest.approx(high)


def test_any_dimension_can_hold_the_repetitions():
    values = samples()
    turned = values.rename(seed="try").transpose()
    xarray.testing.assert_allclose(efhc.interval(turned, "try").low, efhc.interval(values).low)


def test_bootstrap_is_reproducible():
    first, second = (efhc.interval(samples(), method="bootstrap") for _ in range(2))
    assert first.low.identical(second.low)
    assert first.high.identical(second.high)
    assert first.mean.dims == first.low.dims == first.high.dims == ("r",)


def test_bootstrap_is_close_to_student_for_many_normal_values():
    values = samples(seeds=300)
    student, bootstrap = (efhc.interval(values, method=m) for m in ("student", "bootstrap"))
    width = student.high - student.low
    np.testing.assert_allclose(bootstrap.mean, student.mean)
    assert (abs(bootstrap.low - student.low) < 0.1 * width).all()
    assert (abs(bootstrap.high - student.high) < 0.1 * width).all()


def test_bootstrap_follows_skewed_values():
    values = xarray.DataArray([0.0] * 19 + [20.0], dims="seed")
    found = efhc.interval(values, method="bootstrap")
    assert float(found.low) >= 0.0, "a mean of values that are never negative"
    assert float(efhc.interval(values).low) < 0.0


@pytest.mark.parametrize("method", ["student", "bootstrap"])
@pytest.mark.parametrize("values", [samples(seeds=1), samples(seeds=1).isel(seed=0)])
def test_one_repetition_has_a_mean_and_no_interval(method, values):
    found = efhc.interval(values, method=method)
    np.testing.assert_array_equal(found.mean, values.values.reshape(3))
    assert found.low.isnull().all()
    assert found.high.isnull().all()


@pytest.mark.parametrize("method", ["student", "bootstrap"])
def test_a_seed_without_a_value_does_not_count(method):
    values = samples(seeds=4)
    interval = functools.partial(efhc.interval, method=method)
    found = interval(values.where((values.seed != 3) | (values.r != 1)))
    assert found.seeds.values.tolist() == [4, 3, 4]
    whole, three = interval(values), interval(values.isel(seed=slice(3)))
    for part in Interval._fields:
        ours = getattr(found, part)
        np.testing.assert_allclose(ours.sel(r=[0, 2]), getattr(whole, part).sel(r=[0, 2]))
        np.testing.assert_allclose(ours.sel(r=1), getattr(three, part).sel(r=1))


def test_an_unknown_method_is_named():
    with pytest.raises(efhc.ExperimentError, match="method='magic': unknown; choose from student"):
        efhc.interval(samples(), method="magic")


@pytest.fixture
def grid():
    """Seeds differ by tens, policies within a seed by one tenth."""
    rng = np.random.default_rng(1)
    of_seed = rng.normal(0, 10.0, (1, 8, 1, 1))
    of_policy = np.array([0.3, 0.1, 0.0]).reshape(3, 1, 1, 1)
    noise = rng.normal(0, 0.05, (3, 8, 2, 4))
    return xarray.Dataset(
        {
            "accuracy": (("policy", "seed", "evaluation", "device"), of_seed + of_policy + noise),
            "consensus_error": (("policy", "seed", "evaluation"), noise[..., 0]),
        },
        {"policy": ["efhc", "gt", "zt"], "seed": np.arange(8)},
    )


def test_differences_are_paired_by_seed(grid):
    found = efhc.compare(grid, "policy", baseline="zt", confidence=0.9)
    assert found.policy.values.tolist() == ["efhc", "gt"]
    assert found.difference.dims == ("policy", "evaluation")
    means = grid.accuracy.mean("device")
    for policy in ("efhc", "gt"):
        for evaluation in (0, 1):
            ours, theirs = (means.sel(policy=p).isel(evaluation=evaluation) for p in (policy, "zt"))
            expected = scipy.stats.ttest_rel(ours, theirs).confidence_interval(0.9)
            cell = found.sel(policy=policy).isel(evaluation=evaluation)
            assert float(cell.difference) == pytest.approx(float((ours - theirs).mean()))
            assert float(cell.low) == pytest.approx(expected.low)
            assert float(cell.high) == pytest.approx(expected.high)
            unpaired = scipy.stats.ttest_ind(ours, theirs).confidence_interval(0.9)
            assert cell.high - cell.low < (unpaired.high - unpaired.low) / 50
    assert found.attrs == {
        "variable": "accuracy",
        "baseline": "zt",
        "method": "student",
        "confidence": 0.9,
    }
    assert (found.seeds == 8).all()


def test_the_baseline_may_be_spelled_as_in_papers(grid):
    as_named = efhc.compare(grid, "policy", baseline="zt")
    assert efhc.compare(grid, "policy", baseline="ZT").identical(as_named)


def test_a_comparison_says_how_many_pairs_it_has(grid):
    """A seed counts where both of its runs have a value."""
    gaps = grid.copy(deep=True)
    gaps["accuracy"] = grid.accuracy.astype(float)
    gaps.accuracy.loc[{"policy": "efhc", "seed": grid.seed[0]}] = np.nan
    gaps.accuracy.loc[{"policy": "zt", "seed": grid.seed[1]}] = np.nan
    for method in ("student", "bootstrap"):
        found = efhc.compare(gaps, "policy", baseline="zt", method=method)
        assert found.seeds.sel(policy="efhc").values.tolist() == [6, 6]
        assert found.seeds.sel(policy="gt").values.tolist() == [7, 7]
        whole = efhc.compare(grid.isel(seed=slice(2, None)), "policy", baseline="zt", method=method)
        for part in ("difference", "low", "high"):
            np.testing.assert_allclose(found[part].sel(policy="efhc"), whole[part].sel(policy="efhc"))


def test_a_bootstrap_is_paired_too(grid):
    found = efhc.compare(grid, "policy", baseline="zt", method="bootstrap")
    assert (found.low.sel(policy="efhc") > 0.2).all()
    assert (found.high.sel(policy="efhc") < 0.4).all()


def test_other_variables_and_axes(grid):
    found = efhc.compare(grid, "policy", baseline="gt", variable="consensus_error")
    expected = grid.consensus_error.sel(policy="zt") - grid.consensus_error.sel(policy="gt")
    np.testing.assert_allclose(found.difference.sel(policy="zt"), expected.mean("seed"))
    numbers = grid.rename(policy="r").assign_coords(r=[5.0, 50.0, 500.0])
    assert efhc.compare(numbers, "r", baseline=50).r.values.tolist() == [5.0, 500.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"axis": "polcy", "baseline": "zt"},
            "polcy: not an axis of this sweep; it has policy, seed",
        ),
        ({"axis": "policy", "baseline": "rg"}, r"baseline='rg': not on the axis policy, .*'gt'"),
        (
            {"axis": "policy", "baseline": "zt", "variable": "acuracy"},
            "acuracy: not in the results; choose from accuracy, consensus_error",
        ),
        ({"axis": "policy", "baseline": "zt", "method": "magic"}, "method='magic': unknown"),
    ],
)
def test_what_cannot_be_compared_is_named(grid, arguments, message):
    with pytest.raises(efhc.ExperimentError, match=message):
        efhc.compare(grid, **arguments)


def test_one_seed_cannot_be_paired(grid):
    for one in (grid.isel(seed=[0]), grid.isel(seed=0)):
        with pytest.raises(efhc.ExperimentError, match="seed: .*at least 2 seeds"):
            efhc.compare(one, "policy", baseline="zt")


@pytest.fixture
def with_budgets():
    accuracy = np.arange(12.0).reshape(2, 3, 2)
    return xarray.Dataset(
        {"accuracy_at_budget": (("seed", "budget", "device"), accuracy)},
        {"seed": [0, 1], "budget": [0.1, 5.0, 70.0]},
    )


def test_accuracy_at_budgets_chosen_before(with_budgets):
    one = efhc.at_budget(with_budgets, 5)
    assert one.dims == ("seed", "device")
    np.testing.assert_array_equal(one, [[2, 3], [8, 9]])
    several = efhc.at_budget(with_budgets, [70.0, 0.1])
    np.testing.assert_array_equal(several.sel(seed=0), [[4, 5], [0, 1]])


def test_budgets_not_chosen_before_are_refused(with_budgets, grid):
    with pytest.raises(efhc.ExperimentError, match=r"budget=6: .*choose from \[0.1, 5.0, 70.0\]"):
        efhc.at_budget(with_budgets, [5.0, 6.0])
    with pytest.raises(efhc.ExperimentError, match=r"budgets: none were set.*Experiment\(budg"):
        efhc.at_budget(grid, 5.0)


def test_per_run_takes_the_mean_over_the_devices_that_are_there(grid):
    np.testing.assert_allclose(per_run(grid, "accuracy"), grid.accuracy.mean("device"))
    padded = grid.accuracy.copy()
    padded[..., 2:] = np.nan
    found = per_run(grid.assign(accuracy=padded), "accuracy")
    np.testing.assert_allclose(found, grid.accuracy[..., :2].mean("device"))
    assert per_run(grid, "consensus_error").equals(grid.consensus_error)


def test_a_dimension_is_checked(grid):
    check_dimension(grid.accuracy, "policy")
    with pytest.raises(efhc.ExperimentError, match="r: not an axis of this sweep"):
        check_dimension(grid.accuracy, "r")
