"""Every policy of the registry decides from arrays alone, and each as it is defined."""

import functools
import pydoc
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from efhc_jax.members import make_parameters
from efhc_jax.members.tracing import as_arrays, differs
from efhc_jax.policies import POLICIES, Situation
from efhc_jax.policies.base import decide, first_memory

DEVICES = 4


def situation(**changes):
    values = {
        "iteration": jnp.int32(3),
        "deviation": jnp.array([0.0, 0.01, 0.02, 0.05]),
        "decay": jnp.float32(0.5),
        "r": jnp.float32(100.0),
        "bandwidth": jnp.array([1000.0, 1000.0, 5000.0, 13000.0]),
        "coin": jnp.array([0.1, 0.24, 0.25, 0.9]),
        "broadcasts": jnp.zeros(DEVICES, jnp.int32),
    }
    return Situation(**(values | changes))


@pytest.mark.parametrize("name", POLICIES)
def test_conforms(name):
    policy = POLICIES[name]
    parameters = as_arrays(policy, make_parameters(policy, {}))
    memory = first_memory(policy, situation(), parameters)
    fired, following = jax.jit(functools.partial(decide, policy))(situation(), parameters, memory)
    assert not differs(memory, following)
    assert fired.shape == (DEVICES,)
    assert fired.dtype == bool


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("efhc", [False, False, True, True]),  # thresholds 0.05, 0.05, 0.01, 0.0038
        ("gt", [False, True, True, True]),  # mean bandwidth 5000: 0.01 for all, and ≥ fires
        ("zt", [True] * 4),
        ("rg", [True, True, False, False]),  # coin below 1/4
        ("local", [False] * 4),
        ("central", [True] * 4),
    ],
)
def test_who_fires_by_hand(name, expected):
    assert POLICIES[name].fires(situation()).tolist() == expected


def test_with_r_of_zero_everybody_fires_from_the_start():
    still = situation(r=jnp.float32(0), deviation=jnp.zeros(DEVICES), iteration=jnp.int32(0))
    for name in ("efhc", "gt"):
        assert POLICIES[name].fires(still).all()


def test_weaker_bandwidth_never_fires_sooner():
    deviation = jnp.full(DEVICES, 0.02)
    fired = np.asarray(POLICIES["efhc"].fires(situation(deviation=deviation)))
    assert (np.diff(fired.astype(int)) >= 0).all()  # bandwidths are in rising order


def test_everything_that_a_device_can_look_at_is_explained_in_the_help():
    shown = pydoc.render_doc(Situation, renderer=pydoc.plaintext)
    for name in Situation._fields:
        assert re.search(rf"^ \|      {name}: \S.{{6}}", shown, re.MULTILINE), name
