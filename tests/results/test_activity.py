"""Who broadcast and which links were used, told from what an audit keeps."""

import numpy as np
import pytest

import efhc_jax as efhc
from efhc_jax.network.connectivity import links_in_use
from efhc_jax.policies import POLICIES
from efhc_jax.results.activity import activity_of, one_run, weak_devices
from small import named_after

BASE = efhc.Experiment(
    devices=6, connectivity=0.6, iterations=30, eval_every=10, batch_size=2, r=400.0
).inherit({"dynamics.speed": 0.05})


@pytest.mark.parametrize("dynamics", ["static", "markov", "mobility"])
@pytest.mark.parametrize("policy", ["efhc", "local", "central"])
def test_links_in_use_are_those_of_the_engine(tiny, dynamics, policy):
    run = efhc.simulate(BASE.replace(dynamics=dynamics, policy=policy), tiny, trace=True)
    activity = activity_of(run.drop_vars("used_links"))
    one, other = activity.links.T
    assert (one < other).all()
    np.testing.assert_array_equal(activity.used, run.used_links.values[:, one, other])
    np.testing.assert_array_equal(activity.up, run.adjacency.values[:, one, other])
    np.testing.assert_array_equal(activity.fired, run.fired.values)
    np.testing.assert_array_equal(activity.used.sum(1), run.links_used.values)
    assert activity.used.any() == (policy == "efhc")


def test_new_links_count_only_where_the_policy_uses_them():
    none, both = np.zeros((2, 2), bool), ~np.eye(2, dtype=bool)
    silent, appearing = np.zeros((2, 2), bool), np.stack([none, both])
    efhc_policy = POLICIES["efhc"]
    assert links_in_use(efhc_policy, silent, appearing)[1, 0, 1]
    assert not links_in_use(efhc_policy._replace(uses_new_links=False), silent, appearing).any()
    talking = np.ones((2, 2), bool)
    assert links_in_use(efhc_policy._replace(uses_new_links=False), talking, appearing)[1, 0, 1]
    assert not links_in_use(efhc_policy._replace(coordinated=True), talking, appearing).any()


def test_a_run_without_an_audit_has_no_activity(tiny):
    assert activity_of(efhc.simulate(BASE, tiny)) is None


@pytest.fixture(scope="module")
def grid(tiny):
    return efhc.sweep(BASE, tiny, policy=["zt", "efhc"], seed=[0, 5], audit=True)


def test_a_run_of_a_sweep_is_as_if_it_had_been_alone(tiny, grid):
    run = one_run(grid, {"policy": 1, "seed": 1})
    alone = BASE.replace(policy="efhc", seed=5)
    assert efhc.Experiment.from_json(run.attrs["experiment"]) == named_after(alone, "tiny")
    assert "axes" in grid.attrs
    assert "axes" not in run.attrs
    expected = efhc.simulate(alone, tiny, audit=True)
    assert set(expected) <= set(run)
    for name in ("fired", "adjacency", "links_used"):
        np.testing.assert_array_equal(run[name], expected[name])
    np.testing.assert_array_equal(activity_of(run).used, activity_of(expected).used)


def test_what_fills_up_smaller_or_shorter_runs_is_left_out(grid):
    filled = grid.pad(device=(0, 2), neighbor=(0, 2), step=(0, 5), evaluation=(0, 1))
    assert filled.sizes["device"] == 8
    expected, run = (one_run(whole, {"policy": 0, "seed": 0}) for whole in (grid, filled))
    assert run.sizes == expected.sizes
    for one, other in zip(activity_of(run), activity_of(expected), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_run_alone_stays_as_it_is(tiny):
    run = efhc.simulate(BASE, tiny, audit=True)
    assert one_run(run, {}).identical(run)


def test_weak_devices_have_less_than_the_mean_bandwidth(tiny):
    run = efhc.simulate(BASE.replace(weak_fraction=0.5), tiny)
    assert weak_devices(run).sum() == 3
    np.testing.assert_array_equal(weak_devices(run), run.bandwidth.values == 1000)
    assert not weak_devices(efhc.simulate(BASE.replace(weak_fraction=0.0), tiny)).any()
