"""Settings that have an effect only together with others.

Giving a setting that has no effect is an error, because the result would not be what the user expects. A
member that does not state what it uses is assumed to use every setting.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from efhc_jax.errors import ExperimentError
from efhc_jax.experiment.families import FAMILIES, family_in, member_of, parameters_of, users_of
from efhc_jax.members import shown

if TYPE_CHECKING:
    from efhc_jax.experiment.experiment import Experiment

_RANDOM_GRAPHS = ("erdos_renyi", "watts_strogatz")  # whose connectivity is a probability
_OF_FAMILY = {name: setting for setting, family in FAMILIES.items() for name in family.shared}
_OF_METHOD = ("optimizer",)  # families that only some methods use
_STATE_IDLE = ("method", "participation")  # families whose members state which parameters are idle

DECIDING = {  # the settings that decide whether others have an effect
    *FAMILIES,
    *("devices", "weak_fraction", "mean_bandwidth", "weak_bandwidth"),
}


def why_no_effect(experiment: Experiment, name: str) -> str:
    """The reason why a setting has no effect in this experiment, and what to do; empty if it has one.

    Example:
        >>> from efhc_jax import Experiment
        >>> why_no_effect(Experiment(), "dynamics.up_probability")
        "has no effect with dynamics='static'; give dynamics='failures', or leave it out"
    """
    setting, parameter = family_in(name)
    if setting:
        above = setting in _OF_FAMILY or setting in _OF_METHOD
        if above and (why := why_no_effect(experiment, setting)):
            return why
        return _why_not_declared(experiment, setting, parameter) or _why_idle(
            experiment, setting, parameter
        )
    method = experiment.method
    if name in ("optimizer", "local_steps") and not _of_method(experiment, "local_training", True):
        return (
            f"has no effect with method={str(method)!r}, which uses the gradient as it is; "
            "give method='gossip' or a method with copies, or leave it out"
        )
    if name == "policy" and _of_method(experiment, "always_sends", False):
        return (
            f"has no effect with method={str(method)!r}, whose devices send in every iteration; "
            "give method='copies', or leave it out"
        )
    if name in ("graph", "connectivity", "placement") and _brings_links(experiment):
        if name == "graph" and experiment.graph == "file":
            return ""
        chosen = f"dynamics={str(experiment.dynamics)!r}"
        return f"has no effect with {chosen}, whose graphs come from the file; leave it out"
    if name == "graph_file" and not _brings_links(experiment) and experiment.graph != "file":
        return "has no effect without graph='file' or dynamics='trace'; give one of them"
    if name == "allow_disconnected" and _brings_links(experiment):
        return ""
    if name == "weak_fraction" and experiment.weak_bandwidth == experiment.mean_bandwidth:
        return "has no effect where weak_bandwidth equals mean_bandwidth; change one of these"
    if name == "weak_bandwidth" and experiment.weak_devices == 0:
        return (
            f"has no effect with weak_fraction={experiment.weak_fraction:g}, where no device is weak; "
            "give a larger weak_fraction, or leave it out"
        )
    if name in _OF_FAMILY and (why := _why_policy_idle(experiment, _OF_FAMILY[name])):
        return why
    if name in _OF_FAMILY:
        return _why_not_used(experiment, _OF_FAMILY[name], name)
    return ""


def _why_policy_idle(experiment: Experiment, setting: str) -> str:
    """Whether the shared settings of policies have no effect, because the policy has none."""
    return why_no_effect(experiment, "policy") if setting == "policy" else ""


def _of_method(experiment: Experiment, name: str, default: Any) -> Any:
    """An attribute of the method; the default for that of the default method and of unknown ones."""
    if experiment.method == experiment.defaults()["method"]:  # known without importing it
        return default
    return getattr(member_of("method", experiment.method), name, default)


def _why_idle(experiment: Experiment, setting: str, parameter: str) -> str:
    """Whether a member states that its other parameters leave this one without effect."""
    if setting not in _STATE_IDLE:
        return ""
    idle = getattr(member_of(setting, getattr(experiment, setting)), "idle", None)
    return "" if idle is None else idle(experiment.parameters(setting)).get(parameter, "")


def _why_not_declared(experiment: Experiment, setting: str, parameter: str) -> str:
    """Whether the chosen member of a family lacks this parameter."""
    chosen = getattr(experiment, setting)
    if chosen not in FAMILIES[setting].names or parameter in parameters_of(setting, chosen):
        return ""
    return _without_effect(setting, chosen, list(users_of(setting, parameter)))


def _why_not_used(experiment: Experiment, setting: str, name: str) -> str:
    """Whether the chosen member of a family states that it does not use a shared setting."""
    chosen = getattr(experiment, setting)
    if name in _used_by(setting, chosen):
        return ""
    registry = FAMILIES[setting].registry
    users = [
        member
        for member in registry
        if _states_use(setting, member) and name in _used_by(setting, member)
    ]
    return _without_effect(setting, chosen, users)


def _without_effect(setting: str, chosen: str, users: list[str]) -> str:
    instead = " or ".join(f"{setting}={user!r}" for user in users)
    return f"has no effect with {setting}={str(chosen)!r}; give {instead}, or leave it out"


def _states_use(setting: str, name: str) -> bool:
    return getattr(member_of(setting, name), "uses", None) is not None


def _used_by(setting: str, name: str) -> tuple[str, ...]:
    """The shared settings of a family that a member uses: all, if it does not state them."""
    if not _states_use(setting, name):
        return FAMILIES[setting].shared
    return member_of(setting, name).uses


def _brings_links(experiment: Experiment) -> bool:
    """Whether the dynamics have links of their own, and do not use the graph."""
    if experiment.dynamics == experiment.defaults()["dynamics"]:  # known without importing it
        return False
    return getattr(member_of("dynamics", experiment.dynamics), "links", None) is not None


def check_effects(experiment: Experiment, names: Iterable[str]) -> None:
    """Raise if one of these settings differs from its default and has no effect.

    Raises:
        ExperimentError: a setting has no effect; the message names the first one and what to do.
    """
    for name in names:
        if not experiment.is_default(name) and (why := why_no_effect(experiment, name)):
            raise ExperimentError(f"{name}={shown(experiment[name])}: {why}")


def settings_in_effect(experiment: Experiment) -> dict[str, Any]:
    """The settings by name; those without effect have their defaults, or are left out.

    Two experiments for which these are equal give the same run.
    """
    settings, defaults = experiment.to_dict(), experiment.defaults()
    settings["weak_fraction"] = experiment.weak_devices / experiment.devices  # after rounding
    if experiment.graph in _RANDOM_GRAPHS:
        settings["connectivity"] = min(1.0, experiment.connectivity)
    own = ("policy", "optimizer", "local_steps")  # without effect with some methods
    for name in (*_OF_FAMILY, *own, "graph", "graph_file", "weak_fraction", "weak_bandwidth"):
        if why_no_effect(experiment, name):
            settings[name] = defaults[name]
    return {
        name: value
        for name, value in settings.items()
        if not family_in(name)[0] or not why_no_effect(experiment, name)
    }
