"""Differences from EF-HC at equal costs, with intervals corrected for their number, in tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from efhc_jax.comparison.contenders import BASELINE, CONTENDERS, Candidate, at_edges
from efhc_jax.comparison.study import Choices, Study, described
from efhc_jax.results.statistics import interval

if TYPE_CHECKING:
    import xarray

BETTER, WORSE, OPEN = "better", "worse", "not decided"
_CONFIDENCE = 0.95


class Row(NamedTuple):
    """A contender for one criterion.

    Attributes:
        criterion: the cost.
        contender: its name.
        chosen: its tuned settings in words; an asterisk marks the first or last of the values tried.
        accuracy: mean over seeds that did not diverge, in per cent.
        difference: mean of the paired differences from EF-HC, in points; NaN for EF-HC itself.
        low: lower bound of its 95 % interval.
        high: upper bound.
        corrected_low: lower bound of the interval that holds for all comparisons together.
        corrected_high: upper bound.
        seeds: number of pairs; a seed counts if neither run diverged.
        diverged: number of seeds that do not count.
    """

    criterion: str
    contender: str
    chosen: str
    accuracy: float
    difference: float
    low: float
    high: float
    corrected_low: float
    corrected_high: float
    seeds: int
    diverged: int

    @property
    def verdict(self) -> str:
        """By the corrected interval; none if a seed diverged."""
        if self.diverged:
            return f"{self.diverged} of {self.seeds + self.diverged} seeds diverged"
        if self.contender == BASELINE:
            return ""
        if self.corrected_low > 0:
            return BETTER
        return WORSE if self.corrected_high < 0 else OPEN


def rows_of(study: Study, chosen: Choices, found: xarray.DataArray) -> list[Row]:
    """All contenders for all criteria, the best first.

    The intervals of all comparisons of a model hold together with a probability of 95 % (Bonferroni).
    """
    comparisons = len(study.criteria) * (len(study.contenders) - 1)
    corrected = 1 - (1 - _CONFIDENCE) / max(comparisons, 1)
    rows = []
    for place, criterion in enumerate(study.criteria):
        values = found.sel(criterion=criterion.cost)
        some = []
        for name in study.contenders:
            one, own = chosen[name][place], values.sel(contender=name)
            differences = own - values.sel(contender=BASELINE)
            if name == BASELINE:
                differences = differences * np.nan
            mean, low, high, _ = interval(differences)
            seeds = int((own + values.sel(contender=BASELINE)).count())
            _, corrected_low, corrected_high, _ = interval(differences, confidence=corrected)
            some.append(
                Row(
                    criterion.cost,
                    name,
                    "" if one is None else described(one, marked=at_edges(one, study.size)),
                    float(own.mean()),
                    float(mean),
                    float(low),
                    float(high),
                    float(corrected_low),
                    float(corrected_high),
                    seeds,
                    study.size.seeds - seeds,
                )
            )
        rows += sorted(some, key=lambda row: -np.nan_to_num(row.accuracy, nan=-1))
    return rows


def as_markdown(study: Study, rows: list[Row]) -> str:
    """A table per criterion."""
    comparisons = len(study.criteria) * (len(study.contenders) - 1)
    parts = []
    for criterion in study.criteria:
        lines = [
            f"**{_NAMES[study.model]} within {criterion.text}**",
            "",
            "| method | tuned settings | accuracy (%) | minus EF-HC | interval | verdict |",
            "| --- | --- | ---: | ---: | ---: | --- |",
        ]
        for row in rows:
            if row.criterion != criterion.cost:
                continue
            cells = [
                CONTENDERS[row.contender].label,
                row.chosen.replace("*", "\\*"),
                _number(row.accuracy, ".2f"),
                _number(row.difference, "+.2f"),
                ""
                if np.isnan(row.corrected_low)
                else f"{row.corrected_low:+.2f} to {row.corrected_high:+.2f}",
                row.verdict,
            ]
            lines.append(f"| {' | '.join(cells)} |")
        parts.append("\n".join(lines))
    size = study.size
    tuning = f"{len(size.tuning_seeds)} other seed{'s' * (len(size.tuning_seeds) > 1)}"
    parts.append(
        f"Means over {size.seeds} seeds; settings tuned on {tuning}, for each table on its own. "
        f"Differences, in points, are paired by seed; the intervals of all {comparisons} comparisons of "
        "this model hold together with a probability of 95 % (Bonferroni). An asterisk marks the "
        "smallest or largest of the values that were tried."
    )
    rates = ", ".join(f"{rate:g}" for rate in size.learning_rates)
    lines = [
        f"**What was tried**: step sizes a/√(1 + k) with a = {rates}, and for each method",
        "",
        "| method | settings | values tried |",
        "| --- | --- | --- |",
        *(f"| {' | '.join(_grid_of(name))} |" for name in study.contenders),
    ]
    parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _grid_of(contender: str) -> tuple[str, str, str]:
    """A contender, its settings, and the values of those that are tuned, in words."""
    one = CONTENDERS[contender]
    settings = " ".join(f"`{name}={value}`" for name, value in one.settings.items())
    tried = []
    for values in one.tuned:
        name, *others = (described(Candidate(contender, 0, value)) for value in values)
        tried.append(", ".join([name, *(other.rpartition(" ")[2] for other in others)]))
    return one.label, settings, "; ".join(tried)


def as_json(study: Study, rows: list[Row]) -> dict[str, Any]:
    """The size of the study and all rows, for programs."""
    return {
        "model": study.model,
        "size": study.size._asdict(),
        "criteria": [one._asdict() for one in study.criteria],
        "rows": [
            {
                name: None if isinstance(value, float) and np.isnan(value) else value
                for name, value in (row._asdict() | {"verdict": row.verdict}).items()
            }
            for row in rows
        ],
    }


_NAMES = {"svm": "SVM", "lenet5": "LeNet5"}


def _number(value: float, form: str) -> str:
    return "" if np.isnan(value) else f"{value:{form}}"
