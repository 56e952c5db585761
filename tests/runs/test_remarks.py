"""What the theory of a method asks for and an experiment does not have."""

import warnings

import pytest

import efhc_jax as efhc
from efhc_jax.methods import METHODS
from efhc_jax.runs.remarks import remarks
from small import SMALL

FIXED = {"policy": "zt", "learning_rate_schedule": "constant"}
RING = {"graph": "ring", "devices": 4}


def said(**settings):
    return [remark.split("its theory needs ")[1] for remark in remarks(SMALL.replace(**settings))]


@pytest.mark.parametrize("method", ["gossip", "copies", "tracking", "qg_momentum"])
def test_methods_that_ask_for_nothing(method):
    assert said(method=method, dynamics="failures") == []


@pytest.mark.parametrize("method", ["d2", "extra"])
@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({}, []),
        ({"policy": "central"}, []),
        ({"policy": "efhc"}, ["the same P in every iteration; give policy='zt'"]),
        ({"dynamics": "failures"}, ["the same P in every iteration; give dynamics='static'"]),
        (
            {"participation": "sporadic"},
            ["the same P in every iteration; give participation='always'"],
        ),
        ({"participation": "sporadic", "participation.links": "one"}, []),
        (
            {"learning_rate_schedule": "power"},
            ["a constant step size; give learning_rate_schedule='constant'"],
        ),
        ({"learning_rate_schedule": "power", "learning_rate_schedule.exponent": 0.0}, []),
        (
            {"policy": "rg", "dynamics": "failures", "learning_rate_schedule": "cosine"},
            [
                "the same P in every iteration; give policy='zt' and dynamics='static'",
                "a constant step size; give learning_rate_schedule='constant'",
            ],
        ),
    ],
)
def test_exact_methods_ask_for_a_fixed_network_and_constant_steps(method, changes, missing):
    assert said(method=method, **FIXED | changes) == missing


@pytest.mark.parametrize("method", ["choco", "sparq"])
def test_compressed_copies_ask_for_the_same_links_whoever_sends(method):
    assert said(method=method) == []
    asked = ["the same P in every iteration; give dynamics='static'"]
    assert said(method=method, dynamics="failures") == asked


def test_d2_asks_for_eigenvalues():
    """Of a ring of four they are 1, 1/3, 1/3 and -1/3, which is not above -1/3."""
    (remark,) = said(method="d2", **FIXED, **RING)
    assert remark == "eigenvalues of P above -0.333; the lowest is -0.333; try another graph"
    assert said(method="extra", **FIXED, **RING) == []
    assert said(method="d2", **FIXED | {"policy": "central"}, **RING) == []


def test_a_method_of_ones_own_may_ask(monkeypatch):
    mine = METHODS["gossip"]._replace(constant_steps=True, lowest_eigenvalue=-0.2)
    monkeypatch.setitem(METHODS, "mine", mine)
    found = remarks(SMALL.replace(method="mine", **RING))
    assert [remark.split(":")[0] for remark in found] == ["method='mine'"] * 2
    assert "eigenvalues of P above -0.2;" in found[0]
    assert "constant step size" in found[1]


def test_a_run_says_so(tiny):
    with pytest.warns(UserWarning, match="give policy='zt'"):
        efhc.simulate(SMALL.replace(method="extra", learning_rate_schedule="constant"), tiny)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        efhc.simulate(SMALL.replace(method="extra", **FIXED), tiny)


def test_a_sweep_says_each_once_whichever_runs_it_is_about(tiny):
    base = SMALL.replace(learning_rate_schedule="constant")
    axes = {"method": ["extra", "gossip"], "policy": ["efhc", "zt"], "seed": range(3)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        efhc.sweep(base, tiny, **axes)
    found = [str(one.message) for one in caught if "theory needs" in str(one.message)]
    assert found == ["method='extra': its theory needs the same P in every iteration; give policy='zt'"]
