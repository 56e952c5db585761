"""Settings that have an effect only together with others.

Giving a setting that has no effect is an error, because the result would not be what the user expects. A
registered member that is not listed here is assumed to use every setting.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from efhc_jax.errors import ExperimentError

if TYPE_CHECKING:
    from efhc_jax.experiment.experiment import Experiment


class Use(NamedTuple):
    """A setting that only some members of a family use."""

    family: str
    users: tuple[str, ...]
    others: tuple[str, ...]  # members of the package that ignore the setting


_DYNAMICS = ("static", "failures", "markov", "periodic", "mobility", "churn", "trace")
_RANDOM_GRAPHS = ("erdos_renyi", "watts_strogatz")
_FIXED_GRAPHS = ("ring", "complete", "star", "grid", "exponential", "barabasi_albert")


def _only_for(member: str) -> Use:
    return Use("dynamics", (member,), tuple(name for name in _DYNAMICS if name != member))


USES: dict[str, Use] = {
    "labels_per_device": Use("split", ("labels",), ("iid", "dirichlet")),
    "dirichlet_alpha": Use("split", ("dirichlet",), ("labels", "iid")),
    "connectivity": Use("graph", ("geometric", *_RANDOM_GRAPHS), (*_FIXED_GRAPHS, "file")),
    "placement": Use("graph", ("geometric",), (*_RANDOM_GRAPHS, *_FIXED_GRAPHS, "file")),
    "allow_disconnected": Use("graph", ("file",), ("geometric", *_RANDOM_GRAPHS, *_FIXED_GRAPHS)),
    "link_up": _only_for("failures"),
    "link_failure": _only_for("markov"),
    "link_repair": _only_for("markov"),
    "period": _only_for("periodic"),
    "speed": _only_for("mobility"),
    "leave": _only_for("churn"),
    "come_back": _only_for("churn"),
    "absent_train": _only_for("churn"),
    "r": Use("policy", ("efhc", "gt"), ("zt", "rg", "local", "central")),
    "norm_order": Use("policy", ("efhc", "gt"), ("zt", "rg", "local", "central")),
}


DECIDING = {  # the settings that decide whether others have an effect
    *(use.family for use in USES.values()),
    *("devices", "heterogeneity", "mean_bandwidth", "weak_bandwidth"),
}


def why_no_effect(experiment: Experiment, name: str) -> str:
    """The reason why a setting has no effect in this experiment, and what to do; empty if it has one.

    Example:
        >>> from efhc_jax import Experiment
        >>> why_no_effect(Experiment(), "link_up")
        "has no effect with dynamics='static'; give dynamics='failures', or leave it out"
    """
    if name in ("graph", "connectivity", "placement") and experiment.dynamics == "trace":
        if name == "graph" and experiment.graph == "file":
            return ""
        return "has no effect with dynamics='trace', whose graphs come from the file; leave it out"
    if name == "graph_file" and experiment.dynamics != "trace" and experiment.graph != "file":
        return "has no effect without graph='file' or dynamics='trace'; give one of them"
    if name == "allow_disconnected" and experiment.dynamics == "trace":
        return ""
    if name == "heterogeneity" and experiment.weak_bandwidth == experiment.mean_bandwidth:
        return "has no effect where weak_bandwidth equals mean_bandwidth; change one of these"
    if name == "weak_bandwidth" and experiment.weak_devices == 0:
        return (
            f"has no effect with heterogeneity={experiment.heterogeneity:g}, where no device is weak; "
            "give a larger heterogeneity, or leave it out"
        )
    use = USES.get(name)
    if use is None or getattr(experiment, use.family) not in use.others:
        return ""
    users = " or ".join(f"{use.family}={user!r}" for user in use.users)
    chosen = f"{use.family}={str(getattr(experiment, use.family))!r}"
    return f"has no effect with {chosen}; give {users}, or leave it out"


def check_effects(experiment: Experiment, names: Iterable[str]) -> None:
    """Raise if one of these settings differs from its default and has no effect.

    Raises:
        ExperimentError: a setting has no effect; the message names the first one and what to do.
    """
    defaults = experiment.defaults()
    for name in names:
        value = getattr(experiment, name)
        why = why_no_effect(experiment, name) if value != defaults[name] else ""
        if why:
            raise ExperimentError(f"{name}={value!r}: {why}")


def settings_in_effect(experiment: Experiment) -> dict[str, Any]:
    """The fields by name; those without effect have their defaults.

    Two experiments for which these are equal give the same run.
    """
    fields, defaults = vars(experiment).copy(), experiment.defaults()
    fields["heterogeneity"] = experiment.weak_devices / experiment.devices  # after rounding
    if experiment.graph in _RANDOM_GRAPHS:  # a probability
        fields["connectivity"] = min(1.0, experiment.connectivity)
    for name in (*USES, "graph", "graph_file", "heterogeneity", "weak_bandwidth"):
        if why_no_effect(experiment, name):
            fields[name] = defaults[name]
    return fields
