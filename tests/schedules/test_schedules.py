"""Schedules of α(k) and γ(k): each by its formula, in runs that the oracle follows."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import efhc_jax as efhc
import small
from efhc_jax.runs.prepare import first_rates, step_sizes
from efhc_jax.schedules import SCHEDULES, Cosine, Power
from small import SMALL

EVERY = [
    {"learning_rate_schedule": "constant"},
    {"learning_rate_schedule": Cosine(final=0.1)},
    {"learning_rate_schedule": Power(offset=3.0, exponent=0.7)},
    {"threshold_schedule": "constant"},
    {"threshold_schedule": Power(exponent=0.9), "learning_rate_schedule": "constant"},
    {"threshold_schedule": Cosine(final=0.2), "learning_rate_schedule": Cosine(final=0.5)},
]


@pytest.mark.parametrize("changes", EVERY, ids=str)
@pytest.mark.parametrize("policy", ["efhc", "gt", "adaptive"])
def test_the_oracle_follows(x64, tiny, policy, changes):
    experiment = SMALL.replace(policy=policy, **changes).inherit({"r": 800.0})
    run = efhc.simulate(experiment, tiny, trace=True)
    truth = small.oracle_of(experiment, tiny, run)
    for k, expected in enumerate(truth):
        np.testing.assert_array_equal(run.fired[k], expected.fired)
        np.testing.assert_allclose(run.weights[k + 1], expected.weights, atol=1e-11)
    assert 0.02 < run.fired.mean() < 0.98


def test_every_schedule_begins_with_its_scale():
    for name in SCHEDULES:
        experiment = SMALL.replace(learning_rate_schedule=name)
        rates = step_sizes(experiment, 20)
        assert rates[0] == pytest.approx(0.5), name
        assert (np.diff(rates) <= 1e-9).all(), name
        assert first_rates(experiment) == pytest.approx((0.5, 0.5))
    other = SMALL.replace(learning_rate_schedule="constant", threshold_schedule="power")
    assert first_rates(other) == pytest.approx((0.5, 1.0))


def test_a_schedule_does_not_depend_on_where_a_run_is_cut(tiny):
    whole = efhc.simulate(SMALL.replace(learning_rate_schedule="cosine"), tiny)
    parts = efhc.simulate(SMALL.replace(learning_rate_schedule="cosine", eval_every=4), tiny)
    np.testing.assert_array_equal(whole.train_loss, parts.train_loss)


@dataclass(frozen=True)
class Warm:
    warmup: int = efhc.parameter(5, "Iterations until the full step size.", low=1)


def warm(scale, iterations, parameters):
    return lambda count: scale * jnp.minimum(1.0, (count + 1) / parameters.warmup)


def test_a_schedule_of_ones_own_is_swept_in_one_compilation(tiny, monkeypatch):
    from efhc_jax.engine.program import advance

    monkeypatch.setitem(efhc.SCHEDULES, "warm", efhc.Schedule(warm, Warm))
    base = SMALL.replace(learning_rate_schedule="warm")
    axes = {"learning_rate_schedule.warmup": [1, 4, 16], "seed": [0, 1]}
    before = advance._cache_size()
    grid = efhc.sweep(base, tiny, **axes)
    assert advance._cache_size() == before + 1
    assert dict(grid.accuracy.sizes)["learning_rate_schedule.warmup"] == 3
    alone = efhc.simulate(base.replace(**{"learning_rate_schedule.warmup": 4, "seed": 1}), tiny)
    found = grid.sel({"learning_rate_schedule.warmup": 4, "seed": 1})
    np.testing.assert_allclose(found.train_loss, alone.train_loss, rtol=1e-5)
    constant = efhc.simulate(SMALL.replace(learning_rate_schedule="constant"), tiny)
    found = grid.sel({"learning_rate_schedule.warmup": 1, "seed": 0})
    np.testing.assert_allclose(found.train_loss, constant.train_loss, rtol=1e-5)


def test_schedules_of_optax_fit(tiny, monkeypatch):
    def linear(scale, iterations, parameters):
        return optax.linear_schedule(scale, 0.0, iterations)

    monkeypatch.setitem(efhc.SCHEDULES, "linear", efhc.Schedule(linear))
    rates = step_sizes(SMALL.replace(learning_rate_schedule="linear"), 20)
    np.testing.assert_allclose(rates, 0.5 * (1 - np.arange(20) / 20), rtol=1e-6)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (lambda count: 1.0, "is a function; register efhc_jax.Schedule(make)"),
        (efhc.Schedule(lambda *_: lambda k: jnp.zeros(3)), "gives float32 (3,) for an iteration"),
        (efhc.Schedule(lambda *_: lambda k: 3), "gives int32 () for an iteration; return one number"),
        (efhc.Schedule(lambda *_: lambda k: 1.0 if k > 3 else 0.5), "use jnp.where"),
        (efhc.Schedule(lambda *_: lambda k: 1 / np.sqrt(np.asarray(k))), "use jax.numpy"),
        (efhc.Schedule(lambda scale: 3), "make raises TypeError"),
        (efhc.Schedule(warm, int), "parameters=<class 'int'> is not the class of a dataclass"),
    ],
)
@pytest.mark.parametrize("setting", ["learning_rate_schedule", "threshold_schedule"])
def test_a_mistake_is_said_with_the_name_of_the_schedule(tiny, monkeypatch, setting, entry, said):
    expected = efhc.simulate(SMALL, tiny)
    monkeypatch.setitem(efhc.SCHEDULES, "mine", entry)
    with pytest.raises(efhc.ExperimentError) as error:
        efhc.simulate(SMALL.replace(**{setting: "mine"}), tiny)
    assert str(error.value).startswith(f"{setting}='mine': ")
    assert said in str(error.value)
    assert efhc.simulate(SMALL, tiny).equals(expected), "no other run is broken"
