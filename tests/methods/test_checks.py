"""Methods of users: what is wrong with one is said with its name and what to do."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import efhc_jax as efhc
from efhc_jax.methods import METHODS
from efhc_jax.methods.checks import check_method
from small import SMALL

GOSSIP = METHODS["gossip"]


@dataclass(frozen=True)
class Own:
    step: float = efhc.parameter(0.5, "Size of a step.", low=0, high=1)


def updating(function, **others):
    """A method whose models are a function of those before."""
    return efhc.Method(lambda turn, own, memory: efhc.Updated(function(turn.weights), memory), **others)


def remembering(change):
    return efhc.Method(
        lambda turn, own, memory: efhc.Updated(turn.weights, change(memory)),
        lambda weights, own: jnp.zeros(3),
    )


def printing(weights):
    jax.debug.print("{}", weights[0, 0])
    return weights


MISTAKES = {
    "a function": (lambda turn: turn, "is a function; register efhc_jax.Method(update)"),
    "no function": (efhc.Method(3), "update=3 is not a function"),
    "no memory": (GOSSIP._replace(init=3), "init=3 is not a function"),
    "parameters": (GOSSIP._replace(parameters=int), "parameters=<class 'int'> is not the class of a"),
    "unknown parameter": (
        updating(lambda w: w, parameters=Own, steadied_by=("gamma",)),
        "steadied_by=('gamma',); give a tuple of names of its parameters",
    ),
    "models alone": (
        efhc.Method(lambda turn, own, memory: turn.weights),
        "return efhc_jax.Updated(weights, memory)",
    ),
    "shape": (updating(lambda w: w[:, 0]), "update gives weights of float32 (3, 10) in place of"),
    "flat": (updating(lambda w: w.reshape(len(w), -1)), "gives weights of float32 (3, 40) in place of"),
    "type": (updating(lambda w: w.astype(jnp.bfloat16)), "update gives weights of bfloat16"),
    "memory": (remembering(lambda m: m[:2]), "update changes the memory that init gives, float32 (2,)"),
    "forgets": (remembering(lambda m: ()), "update changes the memory that init gives, PyTreeDef(())"),
    "no copies": (
        updating(lambda w: w, keeps_copies=True),
        "keeps_copies=True, so update must return copies and bits",
    ),
    "copies": (
        METHODS["copies"]._replace(keeps_copies=False),
        "keeps_copies=False, so update must return neither copies nor bits",
    ),
    "NumPy": (updating(np.sign), "update calls NumPy on a value of the running program"),
    "Python's if": (updating(lambda w: w if w[0, 0, 0] > 0 else -w), "update needs a concrete value"),
    "fails": (updating(lambda w: w.nothing), "update raises AttributeError"),
    "init fails": (GOSSIP._replace(init=lambda weights: weights), "init raises TypeError"),
    "prints": (updating(printing), "update calls Python in every iteration, by debug"),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_mistake_is_said_with_the_name_of_the_method(kind):
    method, said = MISTAKES[kind]
    with pytest.raises(efhc.ExperimentError) as error:
        check_method("mine", method, shape=(4, 10))
    assert str(error.value).startswith("method='mine': ")
    assert said in str(error.value)


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_the_package_pass(name):
    method = METHODS[name]._replace(fixed_network=not METHODS[name].fixed_network)  # not built in
    check_method("mine", method, shape=(4, 10))
    assert set(method.steadied_by) <= set(efhc.members.declared(method))


def test_a_run_is_refused_with_the_shape_of_its_models(tiny, monkeypatch):
    monkeypatch.setitem(METHODS, "mine", updating(lambda weights: weights.sum(2)))
    with pytest.raises(efhc.ExperimentError, match=r"float32 \(3, 4\) in place of float32 \(3, 4, 10\)"):
        efhc.simulate(SMALL.replace(method="mine"), tiny)


def test_the_parameters_are_those_of_the_run(tiny, monkeypatch):
    def update(turn, own, memory):
        return efhc.Updated(turn.mix(turn.weights) * own.step, memory)

    monkeypatch.setitem(METHODS, "mine", efhc.Method(update, parameters=Own))
    grid = efhc.sweep(SMALL.replace(method="mine"), tiny, **{"method.step": [0.0, 1.0]})
    assert float(grid.consensus_error[0, -1]) == 0
    assert float(grid.consensus_error[1, -1]) > 0
