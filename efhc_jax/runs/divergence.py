"""Messages on runs whose models stopped being finite, with settings to try instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from efhc_jax.experiment.experiment import Experiment
from efhc_jax.methods import METHODS
from efhc_jax.results.selection import setting_of

if TYPE_CHECKING:
    import xarray

    from efhc_jax.results.history import Record


def why_a_run_ended(experiment: Experiment, record: Record) -> str:
    """The message on a run that diverged."""
    devices = ", ".join(str(device) for device in record.diverged)
    method = "" if experiment.is_default("method") else f", method={str(experiment.method)!r}"
    rate = f"a learning_rate of {min(1.0, experiment.learning_rate / 10):g} or less"
    return (
        f"learning_rate={experiment.learning_rate:g}{method}: the models of devices {devices} are not "
        f"finite from iteration {record.diverged_at}; the iterations before it are kept; "
        f"try {' or '.join([rate, *_steadier(experiment.method)])}"
    )


def diverged_runs(result: xarray.Dataset) -> list[str]:
    """The runs of a sweep that diverged, with a line for each method; none if all are finite."""
    if "diverged_at" not in result:
        return []
    shared, lines = setting_of(result), []
    by_method = "method" in result.diverged_at.dims
    for method in result.method.values.tolist() if by_method else [shared.method]:
        at = result.diverged_at.sel({"method": method}) if by_method else result.diverged_at
        gone = at.values[at.values >= 0]
        if not gone.size:
            continue
        name = f"method={method!r}: " if by_method or not shared.is_default("method") else ""
        tries = ["a smaller learning_rate", *_steadier(method)]
        lines.append(
            f"{name}{gone.size:,} of {at.size:,} runs diverged, the first at iteration {gone.min():,}, "
            f"and are not in the means; try {' or '.join(tries)}"
        )
    return lines


def _steadier(method: str) -> list[str]:
    """Smaller values of the parameters that a method states."""
    known = METHODS[method].steadied_by if method in METHODS else ()
    return [f"a smaller method.{name}" for name in known]
