"""The study: candidates are tuned on seeds of their own, and the chosen ones run on paired seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from efhc_jax.comparison.contenders import Candidate, Size, candidates, experiment_of
from efhc_jax.comparison.costs import Criterion, accuracy_within
from efhc_jax.runs.sweeps import sweep

if TYPE_CHECKING:
    import xarray

    from efhc_jax.data import Dataset


_SWEEPS_REMEMBERED = 20  # whose compiled programs are kept

Choices = dict[str, list[Candidate | None]]  # of each contender, for each criterion


class Tuned(NamedTuple):
    """A candidate with its accuracies on the tuning seeds.

    Attributes:
        candidate: the candidate.
        accuracies: mean over seeds for each criterion, in per cent; NaN if a seed diverged.
    """

    candidate: Candidate
    accuracies: list[float]


class Study(NamedTuple):
    """Where and on what the study runs."""

    model: str
    size: Size
    contenders: Sequence[str]
    data: Dataset
    out: Path
    should_stop: Callable[[], bool] = lambda: False
    say: Callable[[str], None] = print

    @property
    def criteria(self) -> list[Criterion]:
        """The costs and budgets at which contenders are compared."""
        rounds = self.size.rounds
        return [
            Criterion("bits", rounds),
            Criterion("time", rounds),
            Criterion("gradients", self.size.gradients),
        ]


def tune(study: Study) -> list[Tuned]:
    """Run all candidates on the tuning seeds."""
    groups = [each for name in study.contenders for each in candidates(name, study.size)]
    seeds, found = list(study.size.tuning_seeds), []
    for number, group in enumerate(groups, start=1):
        first = group[0]
        _forget_programs(number)
        study.say(f"{study.model}, tuning {number} of {len(groups)}: {_named(first, 'learning_rate')}")
        grid = _swept(
            study,
            first,
            f"tuning/{first.contender}-{first.number}",
            learning_rate=[one.settings["learning_rate"] for one in group],
            seed=seeds,
        )
        for candidate in group:
            runs = grid.sel(learning_rate=candidate.settings["learning_rate"])
            means = [float(np.mean(_accuracies(runs, one))) for one in study.criteria]
            found.append(Tuned(candidate, means))
    return found


def choose(study: Study, tuned: Sequence[Tuned]) -> Choices:
    """The best candidate of each contender for each criterion; None if all diverged.

    Of candidates that are equally good it is the first.
    """
    found: Choices = {}
    for contender in study.contenders:
        own = [one for one in tuned if one.candidate.contender == contender]
        found[contender] = []
        for place in range(len(study.criteria)):
            finite = [one for one in own if np.isfinite(one.accuracies[place])]
            best = max(finite, key=lambda one: one.accuracies[place], default=None)
            found[contender].append(None if best is None else best.candidate)
    return found


def compete(study: Study, chosen: Choices) -> dict[tuple[str, int], xarray.Dataset]:
    """Run each chosen candidate on the seeds of the comparison: by contender and number."""
    every = [one for each in chosen.values() for one in each if one is not None]
    distinct = list({(one.contender, one.number): one for one in every}.values())
    found = {}
    for number, one in enumerate(distinct, start=1):
        _forget_programs(number)
        study.say(f"{study.model}, comparing {number} of {len(distinct)}: {_named(one)}")
        name = f"runs/{one.contender}-{one.number}"
        found[one.contender, one.number] = _swept(study, one, name, seed=list(range(study.size.seeds)))
    return found


def accuracies(
    study: Study, chosen: Choices, runs: dict[tuple[str, int], xarray.Dataset]
) -> xarray.DataArray:
    """Accuracy (criterion, contender, seed) of the chosen, in per cent; NaN where a run diverged."""
    import xarray

    nothing = np.full(study.size.seeds, np.nan)
    rows = []
    for place, criterion in enumerate(study.criteria):
        best = [chosen[name][place] for name in study.contenders]
        rows.append(
            [
                nothing if one is None else _accuracies(runs[one.contender, one.number], criterion)
                for one in best
            ]
        )
    return xarray.DataArray(
        rows,
        dims=("criterion", "contender", "seed"),
        coords={
            "criterion": [one.cost for one in study.criteria],
            "contender": list(study.contenders),
            "seed": range(study.size.seeds),
        },
    )


def _forget_programs(number: int) -> None:
    """Forget compiled programs now and then: those of a hundred sweeps fill the memory for code."""
    if number % _SWEEPS_REMEMBERED == 0:
        import jax

        jax.clear_caches()


def _swept(study: Study, candidate: Candidate, folder: str, **axes: Any) -> xarray.Dataset:
    experiment = experiment_of(study.model, candidate, study.size)
    where = study.out / study.model / folder
    return sweep(experiment, study.data, out=where, should_stop=study.should_stop, **axes)


def _accuracies(runs: xarray.Dataset, criterion: Criterion) -> np.ndarray:
    each = (runs.isel(seed=place) for place in range(runs.sizes["seed"]))
    return np.array([accuracy_within(run, criterion) for run in each])


def _named(candidate: Candidate, *without: str) -> str:
    """The contender and the tuned settings of a candidate in words."""
    return ", ".join(filter(None, (candidate.contender, described(candidate, *without))))


_WORDS = {
    "learning_rate": "step size",
    "local_steps": "local steps",
    "participation.links_a": "link probability",
    "participation.links_b": "",  # the same
}


def described(candidate: Candidate, *without: str, marked: Sequence[str] = ()) -> str:
    """The tuned settings of a candidate in words, some marked with an asterisk.

    Example:
        >>> choco = Candidate("choco", 0, {"method.ratio": 0.01, "learning_rate": 0.1})
        >>> described(choco, marked=["learning_rate"])
        'ratio 0.01, step size 0.1*'
    """
    words = {name: _WORDS.get(name, name.rpartition(".")[2]) for name in candidate.settings}
    return ", ".join(
        f"{words[name]} {value:g}{'*' * (name in marked)}"
        for name, value in candidate.settings.items()
        if name not in without and words[name]
    )
