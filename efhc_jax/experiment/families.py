"""Families of members: the settings that name a member of a registry, and the parameters they bring.

A parameter of a member has a full name, the setting and its own name: `dynamics.failure`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from efhc_jax.data import DATASETS
from efhc_jax.data.splits import SPLITS
from efhc_jax.errors import ExperimentError
from efhc_jax.members import Parameter, Registry, declared, parameters_class
from efhc_jax.methods import METHODS
from efhc_jax.models import MODELS
from efhc_jax.network.dynamics import DYNAMICS
from efhc_jax.network.topologies import GRAPHS
from efhc_jax.optimizers import OPTIMIZERS
from efhc_jax.participation import PARTICIPATION
from efhc_jax.policies import POLICIES
from efhc_jax.schedules import SCHEDULES

AS_LEARNING_RATE = "learning_rate"  # of threshold_schedule: γ = α


class Family(NamedTuple):
    """The members that a setting can name."""

    registry: Mapping[str, Any]
    home: str  # where users register a member
    shared: tuple[str, ...] = ()  # settings of `Experiment` that only some members use
    besides: tuple[str, ...] = ()  # names that stand for no member

    @property
    def names(self) -> tuple[str, ...]:
        """All names that the setting can have."""
        return (*self.besides, *self.registry)


FAMILIES: dict[str, Family] = {
    "model": Family(MODELS, "efhc_jax.MODELS"),
    "dataset": Family(DATASETS, "efhc_jax.DATASETS"),
    "method": Family(METHODS, "efhc_jax.METHODS"),
    "policy": Family(POLICIES, "efhc_jax.POLICIES", shared=("r", "norm_order", "threshold_schedule")),
    "split": Family(SPLITS, "efhc_jax.SPLITS", shared=("labels_per_device", "dirichlet_alpha")),
    "graph": Family(
        GRAPHS, "efhc_jax.GRAPHS", shared=("connectivity", "placement", "allow_disconnected")
    ),
    "dynamics": Family(DYNAMICS, "efhc_jax.DYNAMICS"),
    "optimizer": Family(OPTIMIZERS, "efhc_jax.OPTIMIZERS"),
    "participation": Family(PARTICIPATION, "efhc_jax.PARTICIPATION"),
    "learning_rate_schedule": Family(SCHEDULES, "efhc_jax.SCHEDULES"),
    "threshold_schedule": Family(SCHEDULES, "efhc_jax.SCHEDULES", besides=(AS_LEARNING_RATE,)),
}


def member_of(setting: str, name: str) -> Any:
    """The member that a setting names; None if it is not registered, or the name stands for none."""
    registry = FAMILIES[setting].registry
    return registry.get(name)


def is_built_in(setting: str, name: str) -> bool:
    """Whether a setting names the member of the package, which no user has replaced."""
    family = FAMILIES[setting]
    own = isinstance(family.registry, Registry) and family.registry.is_built_in(name)
    return own or name in family.besides


def parameters_of(setting: str, name: str) -> dict[str, Parameter]:
    """The parameters of the member that a setting names, by their own names.

    Raises:
        ExperimentError: the member declares them in an invalid way.
    """
    return declared(member_of(setting, name), f"{setting}={str(name)!r}")


def users_of(setting: str, parameter: str) -> dict[str, Parameter]:
    """The members of a family that declare a parameter, with their declarations.

    A member whose declaration is invalid has none, because no run may use it.
    """
    return {
        name: known[parameter]
        for name, known in _all_declarations(setting).items()
        if parameter in known
    }


def full_names() -> list[str]:
    """The full names of all parameters of all registered members."""
    return [
        f"{setting}.{parameter}"
        for setting in FAMILIES
        for parameter in dict.fromkeys(
            name for known in _all_declarations(setting).values() for name in known
        )
    ]


def family_in(name: str) -> tuple[str, str]:
    """The setting and the parameter of a full name; two empty texts if it is none.

    Example:
        >>> family_in("dynamics.failure"), family_in("seed")
        (('dynamics', 'failure'), ('', ''))
    """
    setting, dot, parameter = name.partition(".")
    return (setting, parameter) if dot and setting in FAMILIES else ("", "")


def named(setting: str, parameters: Any) -> tuple[str, dict[str, Any]]:
    """The member that has these parameters, and their values by full name.

    Raises:
        ExperimentError: no registered member has parameters of this class.

    Example:
        >>> from efhc_jax.policies.adaptive import Adaptive
        >>> named("policy", Adaptive(rate=0.2))
        ('adaptive', {'policy.rate': 0.2, 'policy.gain': 0.3})
    """
    registry, kind = FAMILIES[setting].registry, type(parameters)
    names = [name for name in registry if parameters_class(registry[name]) is kind]
    if len(names) > 1:
        raise ExperimentError(
            f"{setting}={parameters!r}: {' and '.join(names)} have parameters of this class; "
            f"give the name, and the parameters by full names"
        )
    if names:
        known = parameters_of(setting, names[0])
        return names[0], {f"{setting}.{one}": getattr(parameters, one) for one in known}
    others = [
        f"{other}={name!r}"
        for other in FAMILIES
        for name in FAMILIES[other].registry
        if parameters_class(member_of(other, name)) is kind
    ]
    meant = f"they are those of {others[0]}" if others else "register their member first"
    raise ExperimentError(
        f"{setting}={parameters!r}: no registered {setting} has parameters of this class; {meant}"
    )


def check_uses(setting: str, name: str) -> None:
    """Raise unless a member states correctly which shared settings it uses.

    Raises:
        ExperimentError: it names a setting that its family does not share.
    """
    shared, uses = FAMILIES[setting].shared, getattr(member_of(setting, name), "uses", None)
    if uses is not None and not (isinstance(uses, tuple) and set(uses) <= set(shared)):
        raise ExperimentError(
            f"{setting}={str(name)!r}: uses={uses!r}; give a tuple of some of {', '.join(shared)}"
        )


def _all_declarations(setting: str) -> dict[str, dict[str, Parameter]]:
    found = {}
    for name in FAMILIES[setting].registry:
        try:
            found[name] = parameters_of(setting, name)
        except (ExperimentError, ImportError, AttributeError):  # said when a run uses the member
            found[name] = {}
    return found
