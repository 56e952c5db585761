"""The suite of methods: what it times, and what it compares. Nothing here asserts a time."""

import math

import pytest

from benchmarks import ours, report
from benchmarks.suites import methods
from efhc_jax.compressors import COMPRESSORS
from efhc_jax.errors import EfhcError
from efhc_jax.experiment.experiment import Experiment
from efhc_jax.methods import METHODS
from efhc_jax.optimizers import OPTIMIZERS
from efhc_jax.policies import POLICIES


def variant(name, seconds, kind="method", against="gossip", arrays=1):
    timing = {"best": seconds, "samples": []}
    own = {"kind": kind, "against": against, "arrays": arrays}
    return {"name": name, **own, "timing": timing, "memory_bytes": 10**6, "compile_seconds": 1.0}


WORK = {
    "name": "SVM, one run",
    "variants": [
        variant("gossip", 2.0),
        variant("copies", 3.0),
        variant("tracking", 6.5, arrays=2),
        variant("copies, top_k", 9.0, "compressor", "copies"),
        variant("gossip, adam", 8.0, "optimizer"),
    ],
}


def test_every_method_compressor_and_optimizer_is_timed():
    made = [Experiment(**one.settings) for one in methods.VARIANTS]  # their settings are valid
    assert len({one.name for one in methods.VARIANTS}) == len(made)
    assert {one.method for one in made} == set(METHODS)
    assert {one.optimizer for one in made} == set(OPTIMIZERS)
    compressors = {one["method.compressor"] for one in made if one.method == "copies"}
    assert compressors == set(COMPRESSORS)
    bases = {one.against: one for one in methods.VARIANTS}
    assert set(bases) <= {one.name for one in methods.VARIANTS}
    for one in methods.VARIANTS:
        compressed = Experiment(**one.settings)
        uses_none = METHODS[compressed.method].keeps_copies is False or (
            compressed["method.compressor"] == "none"
        )
        assert uses_none == (one.kind != "compressor"), "compressors are timed apart"


def test_methods_are_judged_per_array_and_others_are_not():
    programs = [
        {"method": "d2", "runs": 28, "axes": ["seed"], "programs": 1},
        {"method": "extra", "runs": 28, "axes": ["seed"], "programs": 2},
    ]
    found = methods.verdicts([WORK], programs)
    assert [(one.work, one.measured, one.met) for one in found] == [
        ("SVM, one run, copies", 1.5, True),
        ("SVM, one run, tracking", 1.625, False),
        ("d2", 1, True),
        ("extra", 2, False),
    ]


def test_compressors_are_compared_with_copies_without_one():
    by_name = {one["name"]: one for one in WORK["variants"]}
    assert methods.ratio(WORK, by_name["copies, top_k"]) == 3
    assert methods.ratio(WORK, by_name["gossip, adam"]) == 4
    whole = {"suite": "methods", "works": [WORK], "programs": [], "verdicts": []}
    by_method, by_compressor, by_optimizer, _ = report.sheets(whole)
    assert by_method.columns[2] == by_optimizer.columns[2] == "× gossip"
    assert by_compressor.columns[2] == "× copies"
    assert by_method.rows[2][:5] == ["tracking", "6.5 s", "3.25", "2", "1.62"]
    assert by_compressor.rows[0][:3] == ["copies, top_k", "9 s", "3.00"]


def test_all_policies_and_parameters_of_a_method_share_a_program():
    copies, choco = methods.count_programs(["copies", "choco"])
    assert copies["programs"] == choco["programs"] == 1
    assert copies["runs"] == 2 * 2 * 2 * (len(POLICIES) - 1)  # a coordinator has no neighbours
    assert "policy" not in choco["axes"], "its devices always send"
    assert choco["runs"] == 2**4
    assert set(methods.VALUES) == set(METHODS)
    for name, values in methods.VALUES.items():
        assert all(len(set(each)) > 1 for each in values.values())
        Experiment(method=name, **{f"method.{key}": values[key][0] for key in values})


def test_a_method_that_diverges_is_not_timed(monkeypatch):
    whole = ours.one_run

    def unlimited(experiment, data, iterations):
        made = whole(experiment, data, iterations)
        rate = made.values.learning_rate
        rate = rate._replace(scale=rate.scale * math.inf)
        return made._replace(values=made.values._replace(learning_rate=rate))

    monkeypatch.setattr(ours, "one_run", unlimited)
    size = methods.Size("svm", 1, 4, 1, full_data=False)
    with pytest.raises(EfhcError, match="gossip diverged in SVM, one run; nothing was timed"):
        methods.measure_here(size, methods.VARIANTS[:1])
