"""Adaptive thresholds: a chosen rate of broadcasts, in proportion to bandwidth, whatever the data."""

import numpy as np
import pytest

import efhc_jax as efhc
from efhc_jax.engine.program import advance
from efhc_jax.theory import UNKNOWN
from small import SMALL, stopped_and_resumed

LONG = efhc.Experiment(
    dataset="synthetic", policy="adaptive", iterations=1500, eval_every=750, batch_size=4
)


@pytest.mark.parametrize("model", ["svm", "logistic", "quadratic"])
@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_devices_broadcast_at_the_rate_in_proportion_to_their_bandwidth(model, rate):
    learning_rate = 0.02 if model == "quadratic" else 1.0
    experiment = LONG.replace(model=model, learning_rate=learning_rate, **{"policy.rate": rate})
    run = efhc.simulate(experiment)
    late = run.broadcasts[-1] - run.broadcasts[1]  # the thresholds have settled
    wanted = rate * run.bandwidth / run.bandwidth.mean()
    np.testing.assert_allclose(late / 750, wanted, atol=0.02, rtol=0.1)


def test_no_device_can_broadcast_more_than_always():
    run = efhc.simulate(LONG.replace(iterations=200, eval_every=100, **{"policy.rate": 1.0}))
    strong = run.bandwidth > run.bandwidth.mean()
    late = run.broadcasts[-1] - run.broadcasts[1]
    assert (late[strong] >= 95).all()
    np.testing.assert_allclose(late[~strong], 20, atol=5)


def test_a_device_broadcasts_when_it_first_moves(tiny):
    run = efhc.simulate(SMALL.replace(policy="adaptive"), tiny, trace=True)
    assert not run.fired[0].any(), "nobody has moved"
    moved = (run.weights[1] != run.weights[0]).any("parameter")
    np.testing.assert_array_equal(run.fired[1], moved)


def test_one_compilation_serves_policies_and_parameters(tiny):
    base = SMALL.replace(policy="adaptive", devices=6, connectivity=0.7)
    axes = {"policy": ["efhc", "adaptive", "zt"], "policy.rate": [0.1, 0.4], "r": [50.0, 4000.0]}
    before = advance._cache_size()
    grid = efhc.sweep(base, tiny, runs_at_once=12, **axes)
    assert advance._cache_size() == before + 1
    sent = grid.broadcasts.isel(evaluation=-1).sum("device")
    assert (sent.sel({"policy": "adaptive", "policy.rate": 0.4}) > 0).all()
    rates = sent.sel(policy="adaptive").transpose("policy.rate", "r").values
    assert (rates[1] > rates[0]).all()
    assert (rates[:, 0] == rates[:, 1]).all(), "r means nothing to it"
    others = sent.sel(policy=["efhc", "zt"])
    assert (others.isel({"policy.rate": 0}) == others.isel({"policy.rate": 1})).all()
    alone = efhc.simulate(base.replace(**{"policy.rate": 0.4}), tiny)
    found = grid.sel({"policy": "adaptive", "policy.rate": 0.4, "r": 50.0})
    np.testing.assert_array_equal(found.broadcasts, alone.broadcasts)


def test_its_memory_survives_a_checkpoint(tiny, tmp_path):
    experiment = SMALL.replace(policy="adaptive", iterations=60)
    resumed, saved = stopped_and_resumed(experiment, tiny, tmp_path)
    memories = [value for name, value in saved["progress"].items() if "memories" in name]
    assert len(memories) == 1
    assert (memories[0] > 0).all()
    assert resumed.equals(efhc.simulate(experiment, tiny))


def test_the_audit_does_not_judge_thresholds_with_a_scale_of_their_own(tiny):
    run = efhc.simulate(SMALL.replace(policy="adaptive"), tiny, audit=True)
    found = {finding.name: finding for finding in efhc.audit(run, tiny)}
    decay = found["decay of the thresholds (Remark 3)"]
    assert decay.verdict == UNKNOWN
    assert decay.figure == "the thresholds of policy='adaptive' do not follow γ(k) alone"
