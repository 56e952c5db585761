"""Dynamics of the user's own: what is wrong is said with their name, and breaks no other run."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import pytest

import efhc_jax as efhc
from efhc_jax.network.dynamics.base import Drawn, with_links
from small import SMALL, stopped_and_resumed


@dataclass(frozen=True)
class Blinking:
    on: int = efhc.parameter(2, "Iterations with links.", low=0)
    off: int = efhc.parameter(3, "Iterations without links.", low=1)


def blinking(network, parameters, memory, iteration):
    up = iteration % (parameters.on + parameters.off) < parameters.on
    return with_links(network, network.adjacency & up), memory


def counted(network, parameters, count, iteration):
    snapshot, _ = blinking(network, parameters, (), count)
    return snapshot, count + 1


@pytest.fixture
def blinks(monkeypatch):
    monkeypatch.setitem(efhc.DYNAMICS, "blinking", efhc.Dynamics(blinking, parameters=Blinking))
    return SMALL.replace(dynamics="blinking")


def test_links_are_up_when_they_say(tiny, blinks):
    run = efhc.simulate(blinks, tiny, audit=True)
    graph = efhc.simulate(SMALL, tiny, audit=True).adjacency[0]
    for k, links in enumerate(run.adjacency):
        np.testing.assert_array_equal(links, graph & (k % 5 < 2))


def test_parameters_are_an_axis_in_one_compilation(tiny, blinks):
    from efhc_jax.engine.program import advance

    before = advance._cache_size()
    grid = efhc.sweep(
        blinks.replace(policy="zt"),
        tiny,
        **{"dynamics.on": [1, 3], "dynamics.off": [2, 6], "seed": [0, 1]},
    )
    assert advance._cache_size() == before + 1
    used = grid.links_used.sum("step").isel(seed=0)
    assert (used.sel({"dynamics.on": 3}) > used.sel({"dynamics.on": 1})).all()


def test_memory_is_kept_and_survives_a_checkpoint(tiny, blinks, monkeypatch, tmp_path):
    def init(network, parameters):
        return jnp.int32(0)

    monkeypatch.setitem(efhc.DYNAMICS, "counted", efhc.Dynamics(counted, init, Blinking))
    experiment = blinks.replace(dynamics="counted", iterations=60)
    whole = efhc.simulate(experiment, tiny)
    same = efhc.simulate(experiment.replace(dynamics="blinking"), tiny)
    np.testing.assert_array_equal(whole.links_used, same.links_used)
    resumed, _ = stopped_and_resumed(experiment, tiny, tmp_path)
    assert resumed.equals(whole)


def test_they_are_stored_loaded_and_verified(tiny, blinks, tmp_path):
    run = efhc.simulate(blinks.replace(**{"dynamics.on": 4}), tiny)
    efhc.save(run, tmp_path / "run.nc")
    stored = efhc.load(tmp_path / "run.nc")
    experiment = efhc.Experiment.from_json(stored.attrs["experiment"])
    assert experiment.parameters("dynamics") == Blinking(on=4)
    assert efhc.verify(stored, tiny).agrees
    del efhc.DYNAMICS["blinking"]
    experiment = efhc.Experiment.from_json(stored.attrs["experiment"])
    assert (experiment.dynamics, experiment["dynamics.on"]) == ("blinking", 4)
    with pytest.raises(efhc.ExperimentError, match="dynamics='blinking': is not registered here"):
        efhc.verify(stored, tiny)
    efhc.DYNAMICS["blinking"] = efhc.Dynamics(blinking, parameters=Blinking)


MISTAKES = {
    "a function": (blinking, "is a function; register efhc_jax.Dynamics(at)"),
    "no function": (efhc.Dynamics(3), "at=3 is not a function"),
    "init": (efhc.Dynamics(blinking, 3), "init=3 is not a function"),
    "no snapshot": (
        efhc.Dynamics(lambda network, parameters, memory, k: (network.adjacency, memory)),
        "at gives a tuple; return a Snapshot, and the memory",
    ),
    "shape": (
        efhc.Dynamics(
            lambda network, _, memory, k: (
                efhc.Snapshot(jnp.ones(3, bool), None, jnp.ones(5, bool)),
                memory,
            )
        ),
        "at gives links as bool (3,); return bool (5, 5)",
    ),
    "memory": (
        efhc.Dynamics(lambda network, _, memory, k: (with_links(network, network.adjacency), k)),
        "at changes the memory that init gives",
    ),
    "Python's if": (
        efhc.Dynamics(
            lambda network, _, memory, k: (
                with_links(network, network.adjacency if k > 3 else ~network.adjacency),
                memory,
            )
        ),
        "at needs a concrete value during compilation",
    ),
    "raises": (efhc.Dynamics(lambda network, _, memory, k: 1 / 0), "at raises ZeroDivisionError"),
    "init raises": (
        efhc.Dynamics(blinking, lambda network: 3, Blinking),
        "init raises TypeError",
    ),
    "one way": (
        efhc.Dynamics(
            lambda network, _, memory, k: (with_links(network, jnp.triu(network.adjacency)), memory)
        ),
        "at links device 0 to ",
    ),
    "oneself": (
        efhc.Dynamics(
            lambda network, _, memory, k: (with_links(network, jnp.ones((5, 5), bool)), memory)
        ),
        "at links a device to itself in iteration 0",
    ),
    "parameters": (efhc.Dynamics(blinking, parameters=dict), "is not the class of a dataclass"),
    "draw": (
        efhc.Dynamics(blinking, parameters=Blinking, draw=lambda drawing: Drawn(1 / 0)),
        "draw raises ZeroDivisionError: division by zero",
    ),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_mistake_is_said_with_the_name_of_the_dynamics(tiny, kind, monkeypatch):
    entry, said = MISTAKES[kind]
    expected = efhc.simulate(SMALL, tiny)
    monkeypatch.setitem(efhc.DYNAMICS, "mine", entry)
    with pytest.raises(efhc.ExperimentError) as error:
        efhc.simulate(SMALL.replace(dynamics="mine"), tiny)
    assert str(error.value).startswith("dynamics='mine': ")
    assert said in str(error.value)
    assert efhc.simulate(SMALL, tiny).equals(expected), "no other run is broken"
