"""Types and ranges of the settings of an experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from efhc_jax.errors import ExperimentError
from efhc_jax.experiment.families import family_in, parameters_of, users_of
from efhc_jax.members import Limit, shown

if TYPE_CHECKING:
    from efhc_jax.experiment.experiment import Experiment

LIMITS: dict[str, Limit] = {
    "devices": Limit(int, 1),
    "labels_per_device": Limit(int, 1),
    "dirichlet_alpha": Limit(float, 0, above_low=True),
    "batch_size": Limit(int, 1),
    "local_steps": Limit(int, 1, 1000),
    "iterations": Limit(int, 1, 2**31 - 2),
    "eval_every": Limit(int, 1),
    "early_evaluations": Limit(int, 0, 30),
    "connectivity": Limit(float, 0, 1.5, above_low=True),
    "placement": Limit(float, 0, 1.5),
    "r": Limit(float, 0, infinite=True),
    "weak_fraction": Limit(float, 0, 1, below_high=True),
    "mean_bandwidth": Limit(float, 0, above_low=True),
    "weak_bandwidth": Limit(float, 0, above_low=True),
    "norm_order": Limit(float, 1, infinite=True),
    "learning_rate": Limit(float, 0, above_low=True),
    "seed": Limit(int, 0, 2**32 - 1),
}

_BUDGET = Limit(float, 0, above_low=True)


def limit_of(experiment: Experiment, name: str) -> Limit | None:
    """Type and range of a setting, or of a parameter of the experiment's members; None for a text."""
    setting, own = family_in(name)
    if not setting:
        return LIMITS.get(name)
    known = parameters_of(setting, getattr(experiment, setting)).get(own)
    return None if known is None else known.limit


def check_budgets(budgets: Any) -> tuple[float, ...]:
    """The budgets in increasing order, each once; raise if one is out of range."""
    if not isinstance(budgets, (list, tuple)):
        raise ExperimentError(f"budgets={shown(budgets)}: give a list of numbers {_BUDGET}")
    return tuple(sorted({_BUDGET.check("budgets", budget) for budget in budgets}))


def is_number(name: str) -> bool:
    """Whether a setting, or a parameter of any member, is a number."""
    setting, own = family_in(name)
    if not setting:
        return name in LIMITS
    return all(one.kind is not str for one in users_of(setting, own).values())


def is_file_name(value: Any) -> bool:
    """Whether a value can be the name of a file that results store."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()  # results and settings store it as UTF-8
    except UnicodeEncodeError:
        return False
    return True
