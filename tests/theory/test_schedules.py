"""The audit of schedules: what is known of α(k) and γ(k) for all k, and what only for a run."""

import efhc_jax as efhc
from efhc_jax.theory import UNKNOWN
from efhc_jax.theory.audits import step_size_in_words
from small import SMALL


def findings(tiny, **changes):
    run = efhc.simulate(SMALL.replace(**changes), tiny, audit=True)
    return {finding.name: finding for finding in efhc.audit(run, tiny)}


def test_constant_steps_do_not_vanish(tiny):
    found = findings(tiny, learning_rate_schedule="constant")
    assert found["step sizes vanish (Assumption 5)"].verdict == "does not hold"
    assert found["decay of the thresholds (Remark 3)"].verdict == "holds", "γ = α"


def test_a_cosine_is_known_for_the_run_alone(tiny):
    found = findings(tiny, learning_rate_schedule="cosine")
    for name in ("step sizes vanish", "step sizes sum to infinity", "squared step sizes sum"):
        assert found[f"{name} (Assumption 5)"].verdict == UNKNOWN
    assert found["decay of the thresholds (Remark 3)"].verdict == "holds", "γ = α"
    other = findings(tiny, learning_rate_schedule="cosine", threshold_schedule="power")
    assert other["decay of the thresholds (Remark 3)"].verdict == UNKNOWN


def test_thresholds_that_decay_otherwise_are_judged(tiny):
    found = findings(tiny, threshold_schedule=efhc.schedules.Power(exponent=0.9))
    decay = found["decay of the thresholds (Remark 3)"]
    assert (decay.verdict, decay.value) == ("does not hold", 0.0)
    same = findings(tiny, threshold_schedule="power")
    assert same["decay of the thresholds (Remark 3)"].value == 2.0, "γ(0)/α(0) = 1/0.5"


def test_step_sizes_in_words():
    assert step_size_in_words(efhc.Experiment()) == "1/(1+k)^0.5"
    assert step_size_in_words(SMALL.replace(learning_rate_schedule="cosine")) == "0.5·cosine"
