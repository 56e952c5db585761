"""Settings of the paper's Figure 1: per classifier a sweep for panels i to iii, and one for iv."""

from __future__ import annotations

from typing import Any, NamedTuple

from efhc_jax.experiment.experiment import Experiment
from efhc_jax.experiment.naming import check_choice

COMPARED = ["efhc", "gt", "zt", "rg"]
CLASSIFIERS = {"svm": 7_850, "lenet5": 61_706}  # with their numbers of parameters
CONNECTIVITIES = [0.2, 0.4, 0.6, 0.8, 1.0]


class Study(NamedTuple):
    """One sweep of the figure."""

    name: str  # name of its folder
    experiment: Experiment
    axes: dict[str, list[Any]]


class Preset(NamedTuple):
    """Size of the evaluation."""

    dataset: str
    seeds: dict[str, int]  # by classifier
    iterations: dict[str, int]
    eval_every: dict[str, int]
    early_evaluations: int
    budget_iterations: dict[str, int]  # enough for every policy to reach the budget of panel iv
    connectivities: list[float]


PRESETS = {
    "paper": Preset(
        dataset="fashion_mnist",
        seeds={"svm": 20, "lenet5": 10},
        iterations={"svm": 12_000, "lenet5": 12_000},
        eval_every={"svm": 600, "lenet5": 2_400},
        early_evaluations=5,
        budget_iterations={"svm": 1_500, "lenet5": 800},
        connectivities=CONNECTIVITIES,
    ),
    "quick": Preset(
        dataset="fashion_mnist_mini",
        seeds={"svm": 4, "lenet5": 2},
        iterations={"svm": 1_500, "lenet5": 240},
        eval_every={"svm": 100, "lenet5": 40},
        early_evaluations=2,
        budget_iterations={"svm": 900, "lenet5": 400},
        connectivities=[0.3, 0.6, 1.0],
    ),
}


def budget_of(classifier: str) -> float:
    """The transmission budget of panel iv: 200 models over a link of mean bandwidth."""
    return 200 * CLASSIFIERS[classifier] / 5000


def curves(classifier: str, preset: str, seeds: int | None = None) -> Study:
    """The sweep of panels i to iii."""
    size = _preset(preset)
    experiment = _setting(classifier).replace(
        dataset=size.dataset,
        iterations=size.iterations[classifier],
        eval_every=size.eval_every[classifier],
        early_evaluations=size.early_evaluations,
    )
    repetitions = list(range(seeds or size.seeds[classifier]))
    return Study(f"{classifier}-curves", experiment, {"policy": COMPARED, "seed": repetitions})


def connectivity(classifier: str, preset: str, seeds: int | None = None) -> Study:
    """The sweep of panel iv, in which LeNet5 has one label per device and a smaller r."""
    size = _preset(preset)
    iterations = size.budget_iterations[classifier]
    sparsest = min(size.connectivities)
    experiment = _setting(classifier).replace(
        dataset=size.dataset,
        iterations=iterations,
        eval_every=iterations,
        budgets=(budget_of(classifier),),
        connectivity=sparsest,
        placement=sparsest,  # positions that are connected at all connectivities
    )
    if classifier == "lenet5":
        experiment = experiment.replace(labels_per_device=1, r=5.0)
    repetitions = list(range(seeds or size.seeds[classifier]))
    axes: dict[str, list[Any]] = {
        "policy": COMPARED,
        "connectivity": size.connectivities,
        "seed": repetitions,
    }
    return Study(f"{classifier}-connectivity", experiment, axes)


def _setting(classifier: str) -> Experiment:
    if classifier == "svm":
        return Experiment()
    return Experiment(model="lenet5", labels_per_device=2, weak_fraction=0.8)


def _preset(name: str) -> Preset:
    return PRESETS[check_choice("preset", name, PRESETS)]
