"""Policies of the user's own: what is wrong with one is said with its name, and breaks no other run."""

import jax.numpy as jnp
import numpy as np
import pytest

import efhc_jax as efhc
from efhc_jax.policies.checks import check_policy, compiled_policies

BASE = efhc.Experiment(dataset="synthetic", devices=4, iterations=4, eval_every=4)


def asks_python(now):
    return now.coin > 0 if now.r > 3 else now.coin < 0


MISTAKES = {
    "unknown field": (lambda now: now.energy > 0, "no attribute 'energy'; it has iteration, deviation"),
    "Python's if": (asks_python, "use jnp.where, &, | and ~"),
    "NumPy": (lambda now: np.asarray(now.coin) > 0, "use jax.numpy"),
    "numbers": (lambda now: now.deviation, "gives float32 (4,); return one boolean per device"),
    "one for all": (lambda now: now.r > 0, "gives bool (); return one boolean per device, bool (4,)"),
    "too few": (lambda now: now.coin[1:] > 0, "gives bool (3,)"),
    "nothing": (lambda now: None, "gives NoneType"),
    "shapes": (lambda now: now.coin @ now.coin[:2], "raises TypeError: dot_general"),
    "arguments": (lambda: True, "raises TypeError"),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_mistake_is_said_with_the_name_of_the_policy(kind, monkeypatch):
    fires, said = MISTAKES[kind]
    monkeypatch.setitem(efhc.POLICIES, "mine", efhc.Policy(fires))
    with pytest.raises(efhc.ExperimentError) as error:
        efhc.simulate(BASE.replace(policy="mine"))
    assert str(error.value).startswith("policy='mine': ")
    assert said in str(error.value)


def test_what_is_no_policy_is_refused_with_what_to_register(monkeypatch):
    monkeypatch.setitem(efhc.POLICIES, "mine", lambda now: now.coin > 0)
    with pytest.raises(efhc.ExperimentError, match="register efhc_jax.Policy"):
        efhc.sweep(BASE, policy=["efhc", "mine"])
    with pytest.raises(efhc.ExperimentError, match="is not a function"):
        check_policy("mine", efhc.Policy(3), 4)


def test_a_broken_policy_breaks_no_other_run(monkeypatch):
    expected = efhc.simulate(BASE)
    monkeypatch.setitem(efhc.POLICIES, "broken", efhc.Policy(MISTAKES["unknown field"][0]))
    monkeypatch.setitem(efhc.POLICIES, "mine", efhc.Policy(lambda now: now.coin >= 0))
    assert efhc.simulate(BASE).equals(expected)
    grid = efhc.sweep(BASE, policy=["zt", "mine"])
    assert (grid.links_used.sel(policy="mine") == grid.links_used.sel(policy="zt")).all()


def test_a_program_holds_the_policies_that_it_uses(monkeypatch):
    mine = efhc.Policy(lambda now: jnp.ones_like(now.coin, bool))
    monkeypatch.setitem(efhc.POLICIES, "mine", mine)
    assert mine in compiled_policies({"mine", "efhc"}, 4)
    assert mine not in compiled_policies({"efhc"}, 4)
    every = list(efhc.POLICIES)
    assert compiled_policies({"mine"}, 4)[every.index("mine")] is mine
    assert compiled_policies({"efhc"}, 4)[:6] == tuple(efhc.POLICIES.values())[:6]
