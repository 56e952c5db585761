"""Values of runs and sweeps stay: bit by bit on the same hardware with the same versions."""

import json

import pytest

import unchanged

STORED = json.loads(unchanged.FILE.read_text())
HERE = unchanged.here()
SAME_BITS = STORED["on"] | {"cpu": HERE["cpu"]} == HERE and HERE["cpu"] in STORED["on"]["cpu"]


def assert_unchanged(found, stored):
    assert set(found) == set(stored)
    for name, now in found.items():
        if SAME_BITS:
            assert now["digest"] == stored[name]["digest"], name
        else:  # rounding may move a trigger by an iteration
            assert now["mean"] == pytest.approx(stored[name]["mean"], rel=0.05, abs=1e-6), name


@pytest.mark.parametrize("name", unchanged.RUNS)
def test_runs_are_unchanged(name):
    assert_unchanged(unchanged.summary(unchanged.run(name)), STORED["runs"][name])


@pytest.mark.parametrize("name", unchanged.SWEEPS)
def test_sweeps_are_unchanged(name):
    assert_unchanged(unchanged.summary(unchanged.sweep(name)), STORED["sweeps"][name])


def test_every_member_of_the_package_has_a_run():
    from efhc_jax.experiment.families import FAMILIES

    fields = [dict(unchanged.efhc.Experiment(**run).to_dict()) for run in unchanged.RUNS.values()]
    for family in FAMILIES.keys() - {"dataset", "threshold_schedule"}:
        registry = FAMILIES[family].registry
        assert {name for name in registry if registry.is_built_in(name)} <= {
            each[family] for each in fields
        }
