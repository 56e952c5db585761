"""The contenders of the comparison, the settings that are tuned for each, and the size of the study."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from efhc_jax.experiment.experiment import Experiment

Settings = dict[str, Any]

BASELINE = "efhc"  # the contender that all others are compared with
MODELS = ("svm", "lenet5")


class Contender(NamedTuple):
    """A method with its settings.

    Attributes:
        label: its name in tables and figures.
        settings: those that are fixed.
        tuned: those that are tuned in addition to the step size: for each, the values that are tried,
            given as settings. All combinations are tried.
    """

    label: str
    settings: Settings
    tuned: Sequence[Sequence[Settings]] = ()


def _each(name: str, *values: Any) -> list[Settings]:
    return [{name: value} for value in values]


_THRESHOLDS = [_each("r", 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)]
_COMPRESSION = [_each("method.ratio", 0.03, 0.1, 0.3), _each("method.gamma", 0.1, 0.3, 0.6, 1.0)]
_TRIGGERED = [
    _each("method.ratio", 0.1, 0.3),
    _each("method.gamma", 0.1, 0.3, 1.0),
    _each("r", 10.0, 100.0),
]
_SPARQ = {"method": "sparq", "local_steps": 5}

CONTENDERS: dict[str, Contender] = {
    BASELINE: Contender("EF-HC", {"policy": "efhc"}, _THRESHOLDS),
    "dpsgd": Contender("D-PSGD", {"policy": "zt"}),
    "dspodfl": Contender(
        "DSpodFL",
        {
            "policy": "zt",
            "participation": "sporadic",
            "participation.gradients": "one",
            "participation.links": "two",
        },
        [[{"participation.links_a": p, "participation.links_b": p} for p in (0.1, 0.3, 0.6)]],
    ),
    "et_gossip": Contender("Event-Triggered Gossip", {"method": "copies", "policy": "gt"}, _THRESHOLDS),
    "dfedavgm": Contender(
        "DFedAvgM",
        {"method": "copies", "policy": "zt", "optimizer": "momentum"},
        [_each("local_steps", 2, 5, 20)],
    ),
    "choco": Contender("CHOCO-SGD", {"method": "choco"}, _COMPRESSION),
    "sparq": Contender("SPARQ-SGD", {**_SPARQ, "policy": "gt"}, _TRIGGERED),
    "squarm": Contender("SQuARM-SGD", {**_SPARQ, "policy": "gt", "optimizer": "nesterov"}, _TRIGGERED),
    "sparq_efhc": Contender("SPARQ-SGD, thresholds of EF-HC", {**_SPARQ, "policy": "efhc"}, _TRIGGERED),
    "tracking": Contender("gradient tracking", {"method": "tracking", "policy": "zt"}),
    "d2": Contender("D²", {"method": "d2", "policy": "zt"}),
    "extra": Contender("EXTRA", {"method": "extra", "policy": "zt"}),
    "qg_momentum": Contender(
        "QG-DSGDm", {"method": "qg_momentum", "policy": "zt"}, [_each("method.beta", 0.2, 0.5, 0.9)]
    ),
}


def variants_of(contender: str) -> list[Settings]:
    """All combinations of the settings that are tuned in addition to the step size."""
    combinations = itertools.product(*CONTENDERS[contender].tuned)
    return [dict(itertools.chain.from_iterable(one.items() for one in each)) for each in combinations]


class Size(NamedTuple):
    """The size of the study for a model.

    Attributes:
        dataset: the data.
        gradients: gradient steps of each device; with τ local steps there are τ times fewer iterations.
        eval_every: gradient steps between evaluations.
        early_evaluations: extra evaluations early in the run.
        learning_rates: scales a of the step size a/√(1 + k) that are tried.
        rounds: budget of the comparisons at equal bits and at equal transmission time: what everybody
            sending to all neighbours in so many iterations costs.
        tuning_seeds: seeds for tuning, not used for the comparison.
        seeds: number of seeds of the comparison, from 0.
        variants: the largest number of variants that are tuned for a contender.
    """

    dataset: str
    gradients: int
    eval_every: int
    early_evaluations: int
    learning_rates: tuple[float, ...]
    rounds: float
    tuning_seeds: tuple[int, ...]
    seeds: int
    variants: int | None = None


SIZES: dict[str, dict[str, Size]] = {
    "full": {
        "svm": Size(
            dataset="fashion_mnist",
            gradients=12_000,
            eval_every=600,
            early_evaluations=7,
            learning_rates=(0.01, 0.03, 0.1, 0.3, 1.0),
            rounds=300,
            tuning_seeds=(1000, 1001, 1002),
            seeds=20,
        ),
        "lenet5": Size(
            dataset="fashion_mnist",
            gradients=3_000,
            eval_every=1_000,
            early_evaluations=4,
            learning_rates=(0.03, 0.1, 0.3, 1.0),
            rounds=300,
            tuning_seeds=(1000,),
            seeds=5,
        ),
    },
    "quick": {
        model: Size(
            dataset="fashion_mnist_mini",
            gradients=gradients,
            eval_every=100,
            early_evaluations=4,
            learning_rates=(0.1, 0.3),
            rounds=30,
            tuning_seeds=(1000, 1001),
            seeds=4,  # a batch as large as those that tune, which compiles once for both
            variants=1,
        )
        for model, gradients in (("svm", 300), ("lenet5", 100))
    },
}


def size_of(model: str, preset: str, seeds: int | None = None) -> Size:
    """The size of a preset, perhaps with another number of seeds."""
    size = SIZES[preset][model]
    return size if seeds is None else size._replace(seeds=seeds)


class Candidate(NamedTuple):
    """A contender with values of all that is tuned."""

    contender: str
    number: int  # among the candidates of the contender
    settings: Settings  # the tuned ones


def at_edges(candidate: Candidate, size: Size) -> list[str]:
    """The tuned settings that have the first or last of three or more values that were tried.

    Example:
        >>> at_edges(Candidate("efhc", 0, {"r": 1000.0, "learning_rate": 0.1}), SIZES["full"]["svm"])
        ['r']
    """
    rates = [{"learning_rate": rate} for rate in size.learning_rates]
    found = []
    for values in (*CONTENDERS[candidate.contender].tuned, rates):
        chosen = {name: candidate.settings.get(name) for name in values[0]}
        if len(values) > 2 and chosen in (values[0], values[-1]):
            found += list(chosen)
    return found


def candidates(contender: str, size: Size) -> list[list[Candidate]]:
    """The candidates of a contender: for each of its variants, one per step size."""
    variants = variants_of(contender)[: size.variants]
    rates = size.learning_rates
    return [
        [
            Candidate(contender, place * len(rates) + number, {**variant, "learning_rate": rate})
            for number, rate in enumerate(rates)
        ]
        for place, variant in enumerate(variants)
    ]


def experiment_of(model: str, candidate: Candidate, size: Size) -> Experiment:
    """The experiment of a candidate, in the paper's setting: one label per device, two for LeNet5."""
    settings = {**CONTENDERS[candidate.contender].settings, **candidate.settings}
    steps = settings.get("local_steps", 1)
    paper: Settings = {} if model == "svm" else {"labels_per_device": 2, "weak_fraction": 0.8}
    return Experiment(
        model=model,
        dataset=size.dataset,
        iterations=size.gradients // steps,
        eval_every=size.eval_every // steps,
        early_evaluations=size.early_evaluations,
        **paper,
        **settings,
    )
