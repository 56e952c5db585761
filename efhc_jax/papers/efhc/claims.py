"""The claims of Section V of the paper about Figure 1, tested on the runs.

Every claim is a paired difference over seeds with its 95 % interval. It holds if the whole interval is
on the side of the claim, does not hold if it is on the other side, and is not decided otherwise.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from efhc_jax.plotting.styles import LOOKS
from efhc_jax.results.costs import cost_at_evaluations
from efhc_jax.results.statistics import at_budget, interval, per_run

if TYPE_CHECKING:
    import xarray

HOLDS, FAILS, OPEN = "holds", "does not hold", "not decided at this number of seeds"

CONSIDERABLE = 2.0  # points of accuracy that count as considerable or substantial; the paper gives none


class Claim(NamedTuple):
    """A claim of the paper and the corresponding measurement."""

    classifier: str
    panel: str
    statement: str
    quantity: str  # the measured quantity, with its unit
    difference: float
    low: float
    high: float
    at_least: float  # by the claim, the difference is more than this
    seeds: int

    @property
    def verdict(self) -> str:
        """The verdict: holds, does not hold, or not decided."""
        if np.isnan(self.low):
            return OPEN
        if self.low > self.at_least:
            return HOLDS
        return FAILS if self.high < self.at_least else OPEN


def claims_of_curves(classifier: str, grid: xarray.Dataset) -> list[Claim]:
    """The claims about panels i to iii."""
    time = grid.transmission_time.mean("step", skipna=False)
    last = 100 * per_run(grid, "accuracy").isel(evaluation=-1)
    found = []

    def add(
        panel: str, statement: str, quantity: str, values: xarray.DataArray, least: float = 0.0
    ) -> None:
        found.append(_claim(classifier, panel, statement, quantity, values, least))

    saved = "transmission time per iteration that EF-HC saves"
    for other in ("zt", "gt"):
        values = time.sel(policy=other) - time.sel(policy="efhc")
        add("i", f"EF-HC transmits less per iteration than {_name(other)}", saved, values)
    values = time.sel(policy="efhc") - time.sel(policy="rg")
    add("i", "RG transmits least of all", "transmission time per iteration, EF-HC − RG", values)

    points = "final accuracy, points"
    values = last.sel(policy="efhc") - last.sel(policy="rg")
    add("ii", "RG has substantially lower accuracy", f"{points}, EF-HC − RG", values, CONSIDERABLE)
    for other in ("efhc", "gt", "rg"):
        values = last.sel(policy="zt") - last.sel(policy=other)
        statement = f"ZT has higher accuracy per iteration than {_name(other)}"
        add("ii", statement, f"{points}, ZT − {_name(other)}", values)
    for other in ("efhc", "gt"):
        values = last.sel(policy=other) - last.sel(policy="zt")
        statement = f"{_name(other)} is not considerably below ZT"
        add("ii", statement, f"{points}, {_name(other)} − ZT", values, -CONSIDERABLE)

    for other in ("zt", "gt", "rg"):
        values = advantage_at_equal_time(grid, "efhc", other)
        statement = f"EF-HC has higher accuracy than {_name(other)} at equal transmission time"
        quantity = "accuracy averaged over the common transmission time, points"
        add("iii", statement, quantity, values)
    return found


def claims_of_connectivity(classifier: str, grid: xarray.Dataset) -> list[Claim]:
    """The claims about panel iv."""
    accuracy = 100 * at_budget(grid, float(grid.budget[0])).mean("device")
    slopes = accuracy.polyfit("connectivity", 1).polyfit_coefficients.sel(degree=1, drop=True)
    slopes = slopes.where(accuracy.notnull().all("connectivity"))  # over the same connectivities
    rise = "rise of the accuracy within the budget per unit of connectivity, points"
    found = []
    for policy in ("efhc", "gt", "zt", "rg"):
        statement = f"the accuracy of {_name(policy)} grows with connectivity"
        values = slopes.sel(policy=policy)
        found.append(_claim(classifier, "iv", statement, rise, values))
    for other in ("gt", "zt", "rg"):
        statement = f"EF-HC gains more per connectivity than {_name(other)}"
        values = slopes.sel(policy="efhc") - slopes.sel(policy=other)
        found.append(_claim(classifier, "iv", statement, f"{rise}, difference", values))
    return found


def advantage_at_equal_time(grid: xarray.Dataset, one: str, other: str) -> xarray.DataArray:
    """Accuracy of one policy minus that of another (points) per seed, at equal transmission time.

    It is averaged over the transmission time that both have spent.
    """
    import xarray

    rows = []
    for seed in grid.seed.values:
        runs = [grid.sel(policy=policy, seed=seed) for policy in (one, other)]
        times = [cost_at_evaluations(run) for run in runs]
        common = np.linspace(0, min(time[-1] for time in times), 400)
        curves = [
            np.interp(common, time, 100 * per_run(run, "accuracy").values)
            for run, time in zip(runs, times, strict=True)
        ]
        rows.append(float(np.mean(curves[0] - curves[1])))
    return xarray.DataArray(rows, dims="seed")


def as_markdown(claims: list[Claim]) -> str:
    """The claims as a Markdown table."""
    lines = [
        "| classifier | panel | the paper says | measured | difference (95 % interval) | verdict |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for claim in claims:
        margin = f" (more than {claim.at_least:g})" if claim.at_least else ""
        lines.append(
            f"| {claim.classifier} | {claim.panel} | {claim.statement}{margin} | {claim.quantity} | "
            f"{claim.difference:.3g} ({claim.low:.3g} to {claim.high:.3g}), {claim.seeds} seeds | "
            f"**{claim.verdict}** |"
        )
    return "\n".join(lines) + "\n"


def as_json(claims: list[Claim]) -> str:
    """The claims as JSON."""
    rows = [claim._asdict() | {"verdict": claim.verdict} for claim in claims]
    for row in rows:
        for name, value in row.items():
            if isinstance(value, float) and np.isnan(value):
                row[name] = None
    return json.dumps(rows, indent=1)


def _claim(
    classifier: str,
    panel: str,
    statement: str,
    quantity: str,
    values: xarray.DataArray,
    least: float = 0.0,
) -> Claim:
    reached = values.dropna("seed")
    mean, low, high, _ = (float(part) for part in interval(reached))
    seeds = reached.sizes["seed"]
    return Claim(classifier, panel, statement, quantity, mean, low, high, least, seeds)


def _name(policy: str) -> str:
    return LOOKS[policy].label
