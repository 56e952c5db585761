"""Who takes part: as often as probabilities say, the same at both ends of a link, in every storage."""

import functools
import math
from dataclasses import dataclass
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import efhc_jax as efhc
from efhc_jax.members import make_parameters
from efhc_jax.members.tracing import as_arrays
from efhc_jax.network import slots as storage
from efhc_jax.network.dynamics.base import Snapshot
from efhc_jax.network.slots import Network, as_matrix, of_rows
from efhc_jax.network.split_lists import SplitLists, split_lists
from efhc_jax.participation import PARTICIPATION, Sporadic, sporadic
from efhc_jax.participation.base import (
    Drawing,
    Participation,
    device_coins,
    devices_taking_part,
    link_coins,
    links_taking_part,
)
from efhc_jax.participation.checks import check_masks, check_participation, values_of
from efhc_jax.participation.distributions import DISTRIBUTIONS, quantiles
from efhc_jax.randomness.draws import run_key
from efhc_jax.randomness.streams import Stream, host_stream

DEVICES = 12
PAIRS = np.stack(np.triu_indices(DEVICES, 1), axis=1)
SOME = PAIRS[np.random.default_rng(0).random(len(PAIRS)) < 0.5]
RULE = PARTICIPATION["sporadic"]


def matrix_of(pairs, devices=DEVICES):
    return Network(jnp.asarray(storage.to_matrix(pairs, devices)))


def split_of(pairs, devices=DEVICES, slots=2):
    return storage._without_missing_links(
        split_lists(np.concatenate([pairs, pairs[:, ::-1]]), devices, slots)
    )


def lists_of(pairs, devices=DEVICES):
    """Neighbour lists in an order of their own, with an unused slot."""
    rows = split_of(pairs, devices, devices).neighbors.neighbors[:devices]
    return storage._without_missing_links(jnp.asarray(rows)[:, ::-1])


def snapshot(network):
    return Snapshot(*network, jnp.ones(storage.devices_of(network), bool))


def drawing(parameters, network, pairs=PAIRS, seed=0, iterations=100):
    rng = host_stream(seed, Stream.PARTICIPATION)
    return Drawing(storage.devices_of(network), iterations, pairs, network, parameters, rng)


def masks(parameters, iterations, network=None, seed=0, rule=RULE):
    """Who takes part in many iterations, and the probabilities."""
    network = matrix_of(PAIRS) if network is None else network
    values = values_of("sporadic", rule, drawing(parameters, network, iterations=len(iterations)))
    own, every = as_arrays(rule, parameters), jnp.asarray(iterations, jnp.int32)
    found = over_iterations(rule, values, own, run_key(seed), every, snapshot(network))
    return [None if one is None else np.asarray(one) for one in found]


@functools.partial(jax.jit, static_argnums=0)
@functools.partial(jax.vmap, in_axes=(None, None, None, None, 0, None))
def over_iterations(rule, *given):
    return (
        devices_taking_part(rule, *given),
        links_taking_part(rule, *given),
        sporadic.gradient_probabilities(*given),
        sporadic.link_probabilities(*given),
    )


@pytest.mark.parametrize(
    "parameters",
    [
        Sporadic(),
        Sporadic(gradients="normal", gradients_a=0.3, links="two", links_a=0.1, links_b=0.8),
        Sporadic(gradients="two", gradients_a=0.0, gradients_b=1.0, links="normal", links_b=0.1),
    ],
    ids=["beta", "normal and two", "two and normal"],
)
def test_devices_and_links_take_part_as_often_as_their_probabilities_say(parameters):
    count = 4000
    devices, links, chance, of_links = masks(parameters, np.arange(count))
    assert (devices.shape, links.shape) == ((count, DEVICES), (count, DEVICES, DEVICES))
    assert (chance == chance[0]).all()
    assert (of_links == of_links[0]).all()
    for found, expected in ((devices, chance[0]), (links, of_links[0])):
        deviation = np.sqrt(expected * (1 - expected) / count)
        assert (abs(found.mean(0) - expected) <= 4.5 * deviation).all()
        assert expected.std() > 0.05
    assert (devices[:, chance[0] == 0].sum(), devices[:, chance[0] == 1].all()) == (0, True)


def test_coins_are_independent_of_each_other_and_of_the_probabilities():
    network, key = snapshot(matrix_of(PAIRS)), run_key(1)
    of_devices = jax.vmap(lambda k: device_coins(key, k, network))(jnp.arange(3000))
    of_links = jax.vmap(lambda k: link_coins(key, k, network))(jnp.arange(3000))
    coins = np.concatenate([of_devices, np.asarray(of_links)[:, *PAIRS.T]], axis=1)
    correlation = np.corrcoef(coins.T)
    assert abs(correlation - np.eye(len(correlation))).max() < 0.09
    assert len(np.unique(coins[0])) == DEVICES + len(PAIRS)
    _, _, chance, of_links = masks(Sporadic(redrawn=1), np.arange(3000), seed=1)
    chances = np.concatenate([chance, of_links[:, *PAIRS.T]], axis=1)
    every = np.corrcoef(np.concatenate([coins, chances], axis=1).T)
    assert abs(every - np.eye(len(every))).max() < 0.09


def test_a_link_takes_part_at_both_ends_or_at_none_in_every_storage():
    every = [matrix_of(SOME), lists_of(SOME), split_of(SOME)]
    assert isinstance(every[2].neighbors, SplitLists)
    found = [masks(Sporadic(redrawn=20), np.arange(50), network) for network in every]
    links = storage.to_matrix(SOME, DEVICES)
    used = [
        np.asarray(as_matrix(one[1] & network.links, network.neighbors))
        for one, network in zip(found, every, strict=True)
    ]
    np.testing.assert_array_equal(used[0], used[0].swapaxes(1, 2))
    assert 0.2 < used[0][:, links].mean() < 0.8
    for one, matrices in zip(found, used, strict=True):
        np.testing.assert_array_equal(one[0], found[0][0])
        np.testing.assert_array_equal(matrices, used[0])


def test_the_same_seed_has_the_same_draws_whatever_else_differs():
    usual = masks(Sporadic(), np.arange(60))
    fewer = masks(Sporadic(links="one"), np.arange(30), lists_of(SOME))
    np.testing.assert_array_equal(fewer[0], usual[0][:30])
    assert fewer[1] is None
    alone = masks(Sporadic(gradients="one", steps="regular"), np.arange(60))
    np.testing.assert_array_equal(alone[1], usual[1])
    assert alone[0] is None
    more = masks(Sporadic(gradients_a=2.0), np.arange(60))  # larger probabilities for the same coins
    assert (more[0] >= usual[0]).all()
    assert (more[0] != usual[0]).any()
    other = masks(Sporadic(), np.arange(60), seed=1)
    assert (other[0] != usual[0]).any()
    assert (other[2] != usual[2]).any()
    assert (other[3] != usual[3]).any()


def test_numbers_in_64_bits_do_not_change_who_takes_part():
    single = masks(Sporadic(redrawn=7), np.arange(100))
    with jax.enable_x64(True):
        double = masks(Sporadic(redrawn=7), np.arange(100))
    for one, other in zip(single, double, strict=True):
        np.testing.assert_array_equal(one, other)


def test_probabilities_are_redrawn_after_some_iterations():
    never, redrawn = masks(Sporadic(), np.arange(120)), masks(Sporadic(redrawn=50), np.arange(120))
    for found, first in ((redrawn[2], never[2][0]), (redrawn[3], never[3][0])):
        for begin, end in ((0, 50), (50, 100), (100, 120)):
            assert (found[begin:end] == found[begin]).all()
        np.testing.assert_array_equal(found[0], first)
        assert (found[49] != found[50]).mean() > 0.9
        assert (found[99] != found[100]).mean() > 0.9


def test_regular_steps_are_taken_at_ones_own_speed():
    taken, _, chance, _ = masks(Sporadic(steps="regular"), np.arange(500))
    turns = np.floor(np.arange(501)[:, None] * chance[0].astype(float))
    np.testing.assert_array_equal(taken, np.diff(turns, axis=0) > 0)
    assert 0.2 < taken.mean() < 0.8
    exact = Sporadic(
        gradients="two", gradients_a=0.3, gradients_b=1.0, links="two", links_a=0.3, links_b=1.0
    )
    values = RULE.draw(drawing(exact, matrix_of(PAIRS)))
    assert set(np.asarray(values.gradients, float)) == {math.ceil(0.3 * 2**24) / 2**24, 1.0}
    turn = jax.vmap(lambda k: sporadic.has_turn(values.gradients[jnp.array([0, -1])], k))
    found = np.asarray(turn(jnp.arange(1000)))
    assert found[:, 1].all()
    assert (np.flatnonzero(found[:, 0])[:6] == [3, 6, 9, 13, 16, 19]).all(), "as 10/3, 20/3, 30/3, …"
    assert found[:, 0].sum() == 300


@pytest.mark.parametrize("first", [0, 2**24 - 5, 2**30, 2**31 - 60])
def test_turns_are_exact_in_the_longest_run(first):
    shares = [0, 1, 2**-24, 1 - 2**-24, 0.5, 5033165 / 2**24, 1234567 / 2**24]
    turn = jax.vmap(lambda k: sporadic.has_turn(jnp.asarray(shares, jnp.float32), k))
    found = np.asarray(turn(jnp.arange(50, dtype=jnp.int32) + first))
    for column, share in zip(found.T, map(Fraction, shares), strict=True):
        expected = [
            math.floor((k + 1) * share) > math.floor(k * share) for k in range(first, first + 50)
        ]
        assert column.tolist() == expected


def density(name, a, b, p):
    """The density on [0, 1], up to a factor."""
    if name == "beta":
        return p ** (a - 1) * (1 - p) ** (b - 1)
    return np.exp(-(((p - a) / b) ** 2) / 2)


@pytest.mark.parametrize(
    ("name", "a", "b"),
    [
        ("beta", 2.0, 5.0),
        ("beta", 1.5, 1.0),
        ("normal", 0.5, 0.1),
        ("normal", 0.1, 0.4),
        ("normal", 1.0, 9.0),
    ],
)
def test_probabilities_have_the_distribution(name, a, b):
    levels = (np.arange(4096) + 0.5) / 4096
    found = quantiles(name, a, b, levels)
    assert found.min() >= 0
    assert found.max() <= 1
    points = (np.arange(200_000) + 0.5) / 200_000
    weights = density(name, a, b, points) / density(name, a, b, points).sum()
    mean = (weights * points).sum()
    assert found.mean() == pytest.approx(mean, abs=1e-4)
    assert found.std() == pytest.approx(math.sqrt((weights * (points - mean) ** 2).sum()), abs=1e-4)
    np.testing.assert_allclose(np.interp(found, points, weights.cumsum()), levels, atol=1e-4)


def test_default_probabilities_are_those_of_an_arcsine_law():
    levels = (np.arange(100) + 0.5) / 100
    np.testing.assert_allclose(quantiles("beta", 0.5, 0.5, levels), np.sin(np.pi / 2 * levels) ** 2)
    assert (quantiles("one", 0.2, 0.3, levels) == 1).all()
    found, counts = np.unique(quantiles("two", 0.7, 0.2, levels), return_counts=True)
    assert (found.tolist(), counts.tolist()) == ([0.2, 0.7], [50, 50])


def test_devices_and_links_draw_from_the_whole_distribution():
    ring = np.stack([np.arange(3000), np.arange(1, 3001)], axis=1)
    _, _, chance, of_links = masks(Sporadic(), np.arange(1), lists_of_path(ring))
    network = lists_of_path(ring)
    first = np.asarray(network.neighbors) > np.asarray(of_rows(jnp.arange(3001), network.neighbors))
    for found in (chance[0], of_links[0][first]):
        levels = 2 / np.pi * np.arcsin(np.sqrt(np.sort(found).astype(float)))
        assert len(levels) >= 3000
        assert abs(levels - (np.arange(len(levels)) + 0.5) / len(levels)).max() < 0.03


def lists_of_path(pairs):
    behind = np.arange(len(pairs) + 1)[:, None] + np.array([-1, 1])
    behind[0, 0], behind[-1, 1] = 0, len(pairs)
    return storage._without_missing_links(jnp.asarray(behind, jnp.int32))


def test_always_costs_nothing():
    always, now = PARTICIPATION["always"], snapshot(matrix_of(PAIRS))
    values = values_of("always", always, drawing(None, matrix_of(PAIRS)))
    given = (values, None, run_key(0), jnp.int32(3), now)
    assert jax.tree.leaves(values) == []
    assert devices_taking_part(always, *given) is None
    assert links_taking_part(always, *given) is None
    assert always.parameters is None


def test_values_of_parameters_share_a_compilation_and_runs_share_shapes():
    now, key = snapshot(matrix_of(PAIRS)), run_key(0)
    runs = [Sporadic(), Sporadic(gradients_a=0.9, links_b=3.0, redrawn=5)]

    @jax.jit
    def taken(values, parameters):
        return RULE.devices(values, parameters, key, jnp.int32(7), now)

    values = [RULE.draw(drawing(one, matrix_of(PAIRS))) for one in runs]
    own = [as_arrays(RULE, one) for one in runs]
    found = [taken(*pair) for pair in zip(values, own, strict=True)]
    assert taken._cache_size() == 1
    values.append(RULE.draw(drawing(runs[1], split_of(SOME), SOME, iterations=9)))
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *values[::2])
    assert batch.links.shape == (2, *values[0].links.shape)
    both = jax.vmap(taken)(batch, jax.tree.map(lambda *leaves: jnp.stack(leaves), *own))
    np.testing.assert_array_equal(both, np.stack(found))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gradients": "gamma"}, "participation.gradients='gamma': give one of one, beta, normal, two"),
        ({"links": "Beta"}, "participation.links='Beta': give one of"),
        ({"steps": "often"}, "participation.steps='often': give one of random, regular"),
        ({"gradients_a": 0.0}, "participation.gradients_a=0.0: out of range; give a number of 0.001 or"),
        (
            {"gradients": "two", "gradients_b": 1.5},
            "participation.gradients_b=1.5: out of range; give a number of 0 or more, at most 1, for "
            "participation.gradients='two'",
        ),
        ({"links": "normal", "links_a": 2.0}, "participation.links_a=2.0: out of range"),
        ({"links": "normal", "links_b": 0.0}, "participation.links_b=0.0: out of range"),
    ],
)
def test_what_is_out_of_range_is_said_with_what_to_give(changes, message):
    with pytest.raises(efhc.ExperimentError) as error:
        Sporadic(**changes)
    assert str(error.value).startswith(message)


def test_a_distribution_without_parameters_takes_any():
    assert Sporadic(gradients="one", gradients_a=7.0, gradients_b=0.0).gradients == "one"
    assert {"one", "beta", "normal", "two"} == set(DISTRIBUTIONS)


@dataclass(frozen=True)
class Turns:
    count: int = efhc.parameter(3, "Number of groups of devices, which take turns.", low=1)


def draw(given):
    return jnp.asarray(given.rng.permutation(given.devices))


def devices(values, parameters, key, iteration, network):
    return values % parameters.count == iteration % parameters.count


def links(values, parameters, key, iteration, network):
    return link_coins(key, iteration, network) < 0.5


def checked(rule, network):
    check_participation("mine", rule)
    parameters = make_parameters(rule, {})
    values = values_of("mine", rule, drawing(parameters, network))
    check_masks("mine", rule, values, as_arrays(rule, parameters), run_key(0), snapshot(network))
    return values


@pytest.mark.parametrize("stored", [matrix_of, lists_of, split_of])
@pytest.mark.parametrize("name", ["always", "sporadic", "mine"])
def test_rules_of_the_package_and_of_ones_own_pass(name, stored, monkeypatch):
    monkeypatch.setitem(efhc.PARTICIPATION, "mine", efhc.Participation(draw, devices, links, Turns))
    rule = efhc.PARTICIPATION[name]
    values = checked(rule, stored(SOME))
    if name == "mine":
        given = (
            values,
            as_arrays(rule, Turns(count=4)),
            run_key(0),
            jnp.int32(2),
            snapshot(stored(SOME)),
        )
        assert devices_taking_part(rule, *given).sum() == 3


def numbers(values, parameters, key, iteration, network):
    return link_coins(key, iteration, network)


def one_end(values, parameters, key, iteration, network):
    return jnp.triu(link_coins(key, iteration, network) < 0.5)


def asks_python(values, parameters, key, iteration, network):
    return device_coins(key, iteration, network) < (0.5 if iteration > 3 else 1.0)


MISTAKES = {
    "a function": (devices, "is a function; register efhc_jax.Participation"),
    "no function": (Participation(devices=3), "devices=3 is not a function"),
    "parameters": (Participation(parameters=int), "parameters=<class 'int'> is not the class of a"),
    "draw": (Participation(lambda given: 1 / 0), "draw raises ZeroDivisionError"),
    "arguments": (Participation(devices=lambda network: True), "devices raises TypeError"),
    "Python's if": (Participation(devices=asks_python), "devices needs a concrete value"),
    "numbers": (Participation(links=numbers), "links gives float32 (12, 12); return bool (12, 12), or"),
    "shape": (Participation(devices=links), "devices gives bool (12, 12); return bool (12,), or None"),
    "type": (Participation(devices=lambda *given: (1, 2)), "devices gives tuple; return bool (12,)"),
    "one end": (Participation(links=one_end), "but not"),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_mistake_is_said_with_the_name_of_the_rule(kind):
    rule, said = MISTAKES[kind]
    with pytest.raises(efhc.ExperimentError) as error:
        checked(rule, matrix_of(PAIRS))
    assert str(error.value).startswith("participation='mine': ")
    assert said in str(error.value)
