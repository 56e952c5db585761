"""Compressors of users: what is wrong with one is said with its name and what to do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import efhc_jax as efhc
from efhc_jax.compressors import COMPRESSORS, Compressor
from efhc_jax.storage.code_digests import member_digests
from small import SMALL


def half(vectors, settings, words):
    """Every number in half its size."""
    bits = jnp.full(len(vectors), 16.0 * vectors[0].size, vectors.dtype)
    return vectors / 2, bits


def numbers(parameters, settings):
    return parameters / 2


HALF = Compressor(half, numbers, (), lambda parameters, settings: 0.75)


def giving(vectors=lambda x: x, bits=lambda x: x):
    def compress(given, settings, words):
        found, spent = half(given, settings, words)
        return vectors(found), bits(spent)

    return HALF._replace(compress=compress)


def replaced(function):
    return HALF._replace(compress=lambda vectors, settings, words: function(vectors))


def printing(vectors):
    jax.debug.print("{}", vectors[0, 0])
    return half(vectors, None, None)


MISTAKES = {
    "a function": (half, "is a function; register efhc_jax.Compressor(compress, numbers, uses, contr"),
    "no function": (HALF._replace(compress=3), "compress=3 is not a function"),
    "no bound": (HALF._replace(numbers=None), "numbers=None is not a function"),
    "no contraction": (HALF._replace(contraction=0.5), "contraction=0.5 is not a function"),
    "unknown setting": (
        HALF._replace(uses=("rate",)),
        "uses=('rate',); give a tuple of some of ratio, l",
    ),
    "a text": (HALF._replace(uses="ratio"), "uses='ratio'; give a tuple of some of ratio, levels"),
    "shape": (
        giving(lambda x: x[:, :2]),
        "gives vectors of float32 (3, 2, 10); return float32 (3, 4, 10)",
    ),
    "type": (giving(lambda x: x.astype(jnp.bfloat16)), "gives vectors of bfloat16 (3, 4, 10); return"),
    "one for all": (giving(bits=lambda x: x.sum()), "gives bits of float32 (); return float32 (3,), a"),
    "whole numbers": (giving(bits=lambda x: x.astype(int)), "gives bits of int32 (3,); return float32"),
    "Python's": (giving(bits=lambda x: 16.0), "gives bits of float32 (); return float32 (3,), a n"),
    "no bits": (replaced(lambda x: x), "compress gives a "),
    "fails": (replaced(lambda x: x.nothing), "compress raises AttributeError"),
    "NumPy": (replaced(lambda x: np.asarray(x)), "compress calls NumPy on a value of the running"),
    "Python's if": (replaced(lambda x: -x if x[0, 0, 0] else x), "compress needs a concrete value"),
    "prints": (replaced(printing), "compress calls Python in every iteration, by debug"),
    "no number": (HALF._replace(numbers=lambda n, s: None), "numbers gives None; return the largest si"),
    "nothing": (HALF._replace(numbers=lambda n, s: 0), "numbers gives 0; return the largest size"),
    "bound fails": (HALF._replace(numbers=lambda n: n), "numbers raises TypeError"),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_mistake_is_said_with_the_name_of_the_compressor(tiny, monkeypatch, kind):
    compressor, said = MISTAKES[kind]
    monkeypatch.setitem(COMPRESSORS, "mine", compressor)
    with pytest.raises(efhc.ExperimentError) as error:
        efhc.simulate(SMALL.replace(method="copies", **{"method.compressor": "mine"}), tiny)
    assert str(error.value).startswith("method.compressor='mine': ")
    assert said in str(error.value)


def test_a_broken_one_leaves_the_others_alone(monkeypatch):
    monkeypatch.setitem(COMPRESSORS, "mine", half)
    with pytest.raises(efhc.ExperimentError, match="has no effect with method.compressor='sign'"):
        SMALL.replace(method="copies", **{"method.compressor": "sign", "method.ratio": 0.5})


def run(data):
    experiment = SMALL.replace(method="copies", policy="zt", **{"method.compressor": "mine"})
    return efhc.simulate(experiment, data)


def test_ones_own_is_used_and_replaced_under_the_same_name(tiny, monkeypatch):
    monkeypatch.setitem(COMPRESSORS, "mine", HALF)
    first = run(tiny)
    sizes = 16 * 40 * float(first.degree.sum()) * np.ones(20)
    np.testing.assert_allclose(first.bits, sizes)
    monkeypatch.setitem(COMPRESSORS, "mine", giving(bits=lambda x: 2 * x))
    np.testing.assert_allclose(run(tiny).bits, 2 * sizes)


def test_its_code_is_a_part_of_the_identity_of_a_run(monkeypatch):
    experiment = SMALL.replace(method="copies")
    assert member_digests([experiment]) == {}
    digests = []
    for compressor in (HALF, giving()):
        monkeypatch.setitem(COMPRESSORS, "mine", compressor)
        chosen = experiment.replace(**{"method.compressor": "mine"})
        digests.append(member_digests([chosen, SMALL]))
    assert list(digests[0]) == ["method.compressor 'mine'"]
    assert digests[0] != digests[1]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"method": "choco", "method.ratio": 0}, "method.ratio=0: out of range; give a number above 0"),
        ({"method": "choco", "method.ratio": 1.1}, "method.ratio=1.1: out of range"),
        ({"method": "choco", "method.gamma": 0}, "method.gamma=0: out of range; give a number above 0"),
        ({"method": "sparq", "method.gamma": 1.5}, "method.gamma=1.5: out of range"),
        ({"method": "copies", "method.compressor": "zip"}, "method.compressor='zip': unknown; choose"),
        ({"method": "copies", "method.ratio": 0.1}, "method.ratio=0.1: has no effect with method.compr"),
        (
            {"method": "copies", "method.compressor": "qsgd", "method.levels": 0},
            "method.levels=0: out of range",
        ),
        (
            {"method": "gossip", "method.gamma": 0.5},
            "method.gamma=0.5: has no effect with method='gossip'",
        ),
        ({"method": "choco", "policy": "zt"}, "policy='zt': has no effect with method='choco'"),
        (
            {"method": "tracking", "local_steps": 2},
            "local_steps=2: has no effect with method='tracking'",
        ),
        ({"method": "d2", "optimizer": "adam"}, "optimizer='adam': has no effect with method='d2'"),
        ({"method": "copies", "policy": "central"}, "policy='central': has a coordinator"),
        ({"method": "sparq", "participation": "sporadic"}, "participation='sporadic': leaves out links"),
        ({"method": "qg_momentum", "method.beta": 1.0}, "method.beta=1.0: out of range"),
        ({"method": "qg_momentum", "method.mu": 0.0}, "method.mu=0.0: out of range"),
        ({"local_steps": 0}, "local_steps=0: "),
        ({"optimizer": "momentum", "optimizer.momentum": 1.0}, "optimizer.momentum=1.0: out of range"),
        (
            {"participation": "sporadic", "participation.links": "two", "participation.links_a": -0.1},
            "participation.links_a=-0.1: out of range; give a number of 0 or more, at most 1",
        ),
    ],
)
def test_settings_that_do_not_go_together_are_one_message(settings, said):
    with pytest.raises(efhc.ExperimentError) as error:
        efhc.Experiment(**settings)
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


def test_copies_need_new_links(monkeypatch):
    """A neighbor that is new has no copy unless one is sent over the new link."""
    monkeypatch.setitem(efhc.POLICIES, "mine", efhc.POLICIES["rg"]._replace(uses_new_links=False))
    copies = SMALL.replace(method="copies", policy="mine")
    with pytest.raises(efhc.ExperimentError, match="policy='mine': leaves out new links, but method='c"):
        copies.replace(dynamics="failures")
    for allowed in ({"policy": "local"}, {"method": "gossip", "policy": "mine"}):
        SMALL.replace(**{"method": "copies", "dynamics": "failures", **allowed})
