"""Audits of many runs that share their data and F*."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from efhc_jax.data import Dataset
from efhc_jax.errors import DataError
from efhc_jax.experiment.experiment import Experiment
from efhc_jax.results.datasets import data_of
from efhc_jax.theory.audits import audit, least_loss

if TYPE_CHECKING:
    import xarray

    from efhc_jax.theory import Optimum

_PROBLEM = (  # the settings that F* depends on
    *("model", "dataset", "devices", "split"),
    *("labels_per_device", "dirichlet_alpha", "batch_size", "seed"),
)

_MOST_WORDS = 400  # characters per finding; some list a number for every device


class Auditor:
    """Audits runs; data and F* are computed only once."""

    def __init__(self) -> None:
        self._data: dict[tuple[str, str], Dataset | None] = {}  # by name and digest
        self._optima: dict[tuple[Any, ...], Optimum | None] = {}

    def findings(self, run: xarray.Dataset) -> list[list[str]]:
        """Name, verdict and measured values of every finding."""
        experiment = Experiment.from_json(run.attrs["experiment"])
        data = self._load(run)
        optimum = self._optimum(experiment, data) if data and "global_loss" in run else None
        return [[one.name, one.verdict, _shortened(one.figure)] for one in audit(run, data, optimum)]

    def _load(self, run: xarray.Dataset) -> Dataset | None:
        which = Experiment.from_json(run.attrs["experiment"]).dataset, run.attrs.get("data", "")
        if which not in self._data:
            self._data[which] = None
            with contextlib.suppress(DataError):  # some findings need no data
                self._data[which] = data_of(run)
        return self._data[which]

    def _optimum(self, experiment: Experiment, data: Dataset) -> Optimum | None:
        problem = tuple(experiment[name] for name in _PROBLEM)
        problem += experiment.parameters("model"), experiment.parameters("split")
        if problem not in self._optima:
            self._optima[problem] = least_loss(experiment, data)
        return self._optima[problem]


def _shortened(words: str) -> str:
    """The text, cut at a word if it is too long."""
    return words if len(words) <= _MOST_WORDS else f"{words[:_MOST_WORDS].rsplit(' ', 1)[0]} …"
