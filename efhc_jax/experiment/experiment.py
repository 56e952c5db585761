"""The settings of a run: `Experiment`, checked when it is created.

This module does not import JAX; a member of a family is imported when its parameters are needed.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from efhc_jax.errors import ExperimentError
from efhc_jax.experiment.effects import check_effects, why_no_effect
from efhc_jax.experiment.families import (
    FAMILIES,
    check_uses,
    family_in,
    is_built_in,
    member_of,
    named,
    parameters_of,
    users_of,
)
from efhc_jax.experiment.limits import LIMITS, check_budgets, is_file_name, is_number
from efhc_jax.experiment.naming import StoredName, as_stored, check_choice, no_such_name
from efhc_jax.experiment.renamed import RENAMED, with_new_names
from efhc_jax.experiment.toml import read_toml, said_of, to_toml
from efhc_jax.members import make_parameters, shown
from efhc_jax.text.docstrings import Kind, explained


def _takes_parameters(kind: Kind) -> Kind:
    """Let `__init__` take parameters of members as well, by full name, and check all names."""
    make = kind.__dict__["__init__"]

    @functools.wraps(make)
    def make_with_parameters(self: Any, *values: Any, **settings: Any) -> None:
        check_names(settings)
        _check_once(settings)
        object.__setattr__(self, "_given", {name: settings[name] for name in settings if "." in name})
        make(self, *values, **{name: settings[name] for name in settings if "." not in name})

    setattr(kind, "__init__", make_with_parameters)  # noqa: B010
    return kind


@explained
@_takes_parameters
@dataclass(frozen=True, eq=False, repr=False)
class Experiment:
    """All settings of one run. The defaults are the paper's SVM setting.

    Settings that name a policy, dynamics or another member also take the member's own parameters, as an
    object or by their full names.

    Example:
        >>> Experiment(policy="zt", devices=20).policy
        'zt'
        >>> Experiment(dynamics="markov", **{"dynamics.failure": 0.1})["dynamics.failure"]
        0.1
    """

    model: str = "svm"
    """Model that every device trains: svm, lenet5, logistic or quadratic."""
    dataset: str = "fashion_mnist"
    """Dataset: fashion_mnist (60k images), fashion_mnist_mini (5k, included) or synthetic."""
    method: str = "gossip"
    """Method by which devices exchange and update models: gossip (EF-HC), copies, choco, sparq,
    tracking, d2, extra or qg_momentum."""
    policy: str = "efhc"
    """Policy that decides which devices broadcast: efhc, gt, zt, rg, local, central or adaptive."""
    devices: int = 10
    """Number of devices, m."""
    split: str = "labels"
    """Split of the training data among devices: labels, iid or dirichlet."""
    labels_per_device: int = 1
    """Number of labels per device, for split=labels."""
    dirichlet_alpha: float = 0.5
    """Concentration for split=dirichlet: small values are uneven, large ones close to iid."""
    batch_size: int = 1
    """Samples in each device's mini-batch."""
    optimizer: str = "sgd"
    """Optimizer of local training: sgd, momentum, nesterov or adam."""
    local_steps: int = 1
    """Number of local steps of each device between two exchanges."""
    participation: str = "always"
    """Devices that train and links that are used in an iteration: always (all) or sporadic."""
    iterations: int = 12_000
    """Number of iterations."""
    eval_every: int = 300
    """Number of iterations between evaluations on the test set."""
    early_evaluations: int = 0
    """Number of extra evaluations early in the run, at 1/2, 1/4, 1/8, … of eval_every."""
    graph: str = "geometric"
    """Topology: geometric, ring, complete, star, grid, exponential, erdos_renyi, watts_strogatz,
    barabasi_albert, or file (from graph_file)."""
    connectivity: float = 0.4
    """Radius of links in a geometric graph (unit square); a probability in other random graphs."""
    placement: float = 0.0
    """Radius at which the positions of a geometric graph must be connected; 0 for connectivity."""
    dynamics: str = "static"
    """Changes of the network: static, failures, markov, periodic, mobility, churn or trace."""
    graph_file: str = ""
    """File with a graph, for graph=file, or with graphs over time, for dynamics=trace."""
    allow_disconnected: bool = False
    """Whether a custom graph may be disconnected."""
    r: float = 50.0
    """Scale of the broadcast thresholds r·ρ_i·γ(k)."""
    weak_fraction: float = 0.4
    """Fraction of devices with weak bandwidth, the paper's heterogeneity H."""
    mean_bandwidth: float = 5000.0
    """Mean bandwidth over devices."""
    weak_bandwidth: float = 1000.0
    """Bandwidth of a weak device."""
    norm_order: float = 2.0
    """Order q of the norm in the trigger, 1 or more; inf for the largest entry."""
    learning_rate: float = 1.0
    """Scale a of the step size α(k), which is a / (1 + k)^0.5 by default."""
    learning_rate_schedule: str = "power"
    """Schedule of the step size α(k): power (the paper's), constant or cosine."""
    threshold_schedule: str = "learning_rate"
    """Schedule of the thresholds, γ(k): learning_rate (γ = α), power, constant or cosine."""
    budgets: tuple[float, ...] = ()
    """Cumulative transmission times at which to evaluate the accuracy."""
    seed: int = 0
    """Random seed."""

    def __post_init__(self) -> None:
        self._check()
        check_effects(self, (*self.defaults(), *self.given))

    def _check(self) -> None:
        """Check every value, alone and together with the others."""
        self._unpack_parameters()
        _check_single(self._fields() | self.given)
        for name, limit in LIMITS.items():
            object.__setattr__(self, name, limit.check(name, getattr(self, name)))
        for name, family in FAMILIES.items():
            object.__setattr__(self, name, check_choice(name, getattr(self, name), family.names))
            if family.shared:
                check_uses(name, getattr(self, name))
        object.__setattr__(self, "_given", self._checked_parameters())
        object.__setattr__(self, "budgets", check_budgets(self.budgets))
        if not is_file_name(self.graph_file):
            raise ExperimentError(f"graph_file={shown(self.graph_file)}: give the name of a file")
        if not isinstance(self.allow_disconnected, bool):
            value = shown(self.allow_disconnected)
            raise ExperimentError(f"allow_disconnected={value}: give true or false")
        if (self.dynamics == "trace" or self.graph == "file") and not self.graph_file:
            needs = "dynamics='trace'" if self.dynamics == "trace" else "graph='file'"
            raise ExperimentError(f"graph_file: {needs} needs one; give the name of the file")
        self._check_graph()
        self._check_method()
        if self.placement > self.connectivity:
            raise ExperimentError(
                f"placement={self.placement:g}: positions that are connected at this radius may not "
                f"be at connectivity={self.connectivity:g}; give at most that"
            )
        self._check_bandwidths()

    def _unpack_parameters(self) -> None:
        """Take the values out of parameters that were given as an object: `Markov(failure=0.1)`."""
        for setting in FAMILIES:
            value = getattr(self, setting)
            if hasattr(value, "_fields") or isinstance(value, type):
                raise ExperimentError(
                    f"{setting}={shown(value)}: give the name of a registered member, "
                    "or an object of its parameters"
                )
            if dataclasses.is_dataclass(value):
                name, values = named(setting, value)
                object.__setattr__(self, setting, name)
                object.__setattr__(self, "_given", self.given | values)

    def _checked_parameters(self) -> dict[str, Any]:
        """The given parameters of members in their types, without those that are defaults.

        Parameters that the chosen members do not have are kept for a member that has them.
        """
        kept = {}
        for name, value in self.given.items():
            setting, own = family_in(name)
            known = parameters_of(setting, getattr(self, setting)).get(own)
            checked = value if known is None else known.check(name, value)
            if known is None or checked != known.default:
                kept[name] = checked
        return dict(sorted(kept.items()))

    def _check_graph(self) -> None:
        """Raise if the dynamics need another graph."""
        if self.dynamics == self.defaults()["dynamics"]:  # known without importing it
            return
        wanted = getattr(member_of("dynamics", self.dynamics), "graphs", None)
        if wanted is not None and self.graph not in wanted:
            instead = " or ".join(f"graph={name!r}" for name in wanted)
            raise ExperimentError(f"graph={self.graph!r}: dynamics={self.dynamics!r} needs {instead}")

    def _check_method(self) -> None:
        """Raise if the policy or the participation does not go with the method."""
        for setting in ("method", "participation"):
            if not self.is_default(setting):
                self.parameters(setting)  # which checks them together
        if self.method == self.defaults()["method"]:  # known without importing it
            return
        method, policy = member_of("method", self.method), member_of("policy", self.policy)
        if not getattr(method, "keeps_copies", False):
            return
        if getattr(policy, "coordinated", False):
            raise ExperimentError(
                f"policy={self.policy!r}: has a coordinator, but the devices of method={self.method!r} "
                "send to neighbours; give method='gossip', or another policy"
            )
        own = not is_built_in("policy", self.policy) and not getattr(method, "always_sends", False)
        changes = not getattr(member_of("dynamics", self.dynamics), "fixed", False)
        if own and changes and not getattr(policy, "uses_new_links", True):
            raise ExperimentError(
                f"policy={self.policy!r}: leaves out new links, but method={self.method!r} averages "
                "copies that are sent over them; register it with uses_new_links=True, or give "
                "dynamics='static'"
            )
        closes = getattr(member_of("participation", self.participation), "closes_links", None)
        if closes is not None and closes(self.parameters("participation")):
            raise ExperimentError(
                f"participation={self.participation!r}: leaves out links, but method={self.method!r} "
                "needs every message to arrive, or copies would differ; give participation.links='one', "
                "or method='gossip'"
            )

    def _check_bandwidths(self) -> None:
        """Raise if the weak devices leave nothing for the others."""
        if self.weak_devices == self.devices and self.weak_bandwidth != self.mean_bandwidth:
            raise ExperimentError(
                f"weak_fraction={self.weak_fraction:g}: makes all {self.devices} devices weak, so "
                f"the mean bandwidth cannot be {self.mean_bandwidth:g}; "
                f"try {(self.devices - 1) / self.devices:g} or less"
            )
        if self.strong_bandwidth <= 0:
            raise ExperimentError(
                f"weak_bandwidth={self.weak_bandwidth:g}: {self.weak_devices} such devices leave "
                f"nothing for the others at mean_bandwidth={self.mean_bandwidth:g}; "
                f"try at most {self.mean_bandwidth:g}"
            )

    @property
    def given(self) -> dict[str, Any]:
        """Parameters of members that differ from their defaults, by full name.

        Those that the chosen members do not have are kept for a member that has them.
        """
        return self.__dict__["_given"]

    @property
    def weak_devices(self) -> int:
        """Number of weak devices: H·m, rounded to the nearest integer."""
        return math.floor(self.weak_fraction * self.devices + 0.5)

    @property
    def strong_bandwidth(self) -> float:
        """Bandwidth of the devices that are not weak, such that the mean is exact."""
        weak = self.weak_devices
        if weak == self.devices:
            return self.mean_bandwidth
        total = self.mean_bandwidth * self.devices
        return (total - self.weak_bandwidth * weak) / (self.devices - weak)

    def parameters(self, setting: str) -> Any:
        """The parameters of the member that a setting names, as an object; None if it has none.

        Example:
            >>> Experiment(policy="adaptive").parameters("policy")
            Adaptive(rate=0.1, gain=0.3)
        """
        name = getattr(self, setting)
        own = {one: self[f"{setting}.{one}"] for one in parameters_of(setting, name)}
        return make_parameters(member_of(setting, name), own)

    def __getitem__(self, name: str) -> Any:
        """The value of a setting, or of a member's parameter by its full name."""
        setting, own = family_in(name)
        if not setting:
            return getattr(self, name)
        if name in self.given:
            return self.given[name]
        known = parameters_of(setting, getattr(self, setting)).get(own)
        if known is None:
            known = next(iter(users_of(setting, own).values()))
        return known.default

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Experiment):
            return NotImplemented
        return self._fields() == other._fields() and self.given == other.given

    def __hash__(self) -> int:
        return hash((*self._fields().values(), *self.given.items()))

    def __repr__(self) -> str:
        fields = [f"{name}={value!r}" for name, value in self._fields().items()]
        more = [f"**{self.given!r}"] if self.given else []
        return f"Experiment({', '.join([*fields, *more])})"

    def replace(self, **changes: Any) -> Experiment:
        """The same experiment with other values for some settings.

        Settings that are kept may have no effect in the new experiment: `r`, for example, is kept for
        the next policy that uses it.

        Raises:
            ExperimentError: a new value is out of range, or has no effect.
        """
        replaced = self.inherit(changes)
        check_effects(replaced, changes)
        return replaced

    def inherit(self, changes: Mapping[str, Any]) -> Experiment:
        """The same as `replace`, but new values may have no effect, as in one of the runs of a sweep."""
        check_names(name for name in changes if name not in self.given)
        _check_once(changes)
        return self._of({**self._fields(), **self.given, **changes})

    @classmethod
    def _of(cls, settings: Mapping[str, Any]) -> Experiment:
        """An experiment whose values are checked, but not whether they have an effect."""
        made = object.__new__(cls)
        for name in cls.defaults():
            object.__setattr__(made, name, settings[name])
        object.__setattr__(made, "_given", {name: settings[name] for name in settings if "." in name})
        made._check()
        return made

    def _fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.defaults()}

    @classmethod
    @functools.cache
    def defaults(cls) -> Mapping[str, Any]:
        """The default of every setting by name, without parameters of members."""
        return types.MappingProxyType({field.name: field.default for field in dataclasses.fields(cls)})

    def is_default(self, name: str) -> bool:
        """Whether a setting, or a parameter by its full name, has its default."""
        return name not in self.given and self[name] == self.defaults().get(name, self[name])

    def to_dict(self) -> dict[str, Any]:
        """All settings by name, followed by the parameters of the chosen members by their full names."""
        chosen = {
            f"{setting}.{own}": self[f"{setting}.{own}"]
            for setting in FAMILIES
            for own in parameters_of(setting, getattr(self, setting))
        }
        return self._fields() | chosen | self.given

    def _repr_html_(self) -> str:
        from efhc_jax.experiment.html import experiment_html

        return experiment_html(self)

    def to_json(self) -> str:
        """All settings as strict JSON; an infinite value is the string "inf"."""
        settings = {name: _finite_or_word(value) for name, value in self.to_dict().items()}
        return json.dumps(settings, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Experiment:
        """The experiment that `to_json` wrote.

        Names that are not registered here are kept, and rejected only when the experiment is run.
        """
        try:
            settings = json.loads(text)
        except (TypeError, ValueError, RecursionError):
            settings = None
        if not isinstance(settings, dict):
            raise ExperimentError("experiment: is not a JSON object with settings")
        settings = with_new_names(settings)
        check_names(name for name in settings if not family_in(name)[0])
        stored = {
            name: math.inf if value == "inf" and is_number(name) else value
            for name, value in settings.items()
        }
        return cls._of({**cls.defaults(), **as_stored(stored)})

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> Experiment:
        """An experiment from names and values; settings that are not given keep their defaults.

        All settings together, as `to_dict` gives them, may include some without effect.
        """
        check_names(settings)
        return cls._of(settings) if cls.defaults().keys() <= settings.keys() else cls(**settings)

    @classmethod
    def from_toml(cls, path: str | Path) -> Experiment:
        """An experiment from a TOML file.

        Settings are at its top level. The name and the parameters of a member are a table:

            [dynamics]
            name = "markov"
            failure = 0.1
        """
        settings = read_toml(path)
        with said_of(path):
            return cls.from_dict(settings)

    def to_toml(self) -> str:
        """All settings as TOML, which `from_toml` reads; those without effect as comments."""
        idle = {
            name for name in self.to_dict() if not self.is_default(name) and why_no_effect(self, name)
        }
        return to_toml(self.to_dict(), list(FAMILIES), idle)


def check_registered(experiment: Experiment) -> None:
    """Raise unless every name in the experiment is registered, so that it can be run."""
    for name, family in FAMILIES.items():
        value = getattr(experiment, name)
        if isinstance(value, StoredName) and name != "dataset":
            raise ExperimentError(
                f"{name}={str(value)!r}: is not registered here; register it as it was when the "
                f"result was made, {family.home}[{str(value)!r}] = …, or name its file: --members FILE"
            )


def sweep_from_toml(path: str | Path) -> tuple[Experiment, dict[str, list[Any]]]:
    """The settings that all runs of a sweep share, and the axes: the lists in a TOML file.

    Whether a setting has an effect depends on the axes, so the sweep checks it.
    """
    settings = read_toml(path)
    lists = {name for name, value in settings.items() if isinstance(value, list)} - {"budgets"}
    with said_of(path):
        check_names(settings)
        axes = {name: settings[name] for name in settings if name in lists}
        shared = {name: value for name, value in settings.items() if name not in lists}
        return Experiment().inherit(shared | first_values(axes)), axes


def first_values(axes: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the first run of a sweep on its axes."""
    return {name: values[0] for name, values in axes.items() if len(values)}


def check_names(settings: Iterable[str]) -> None:
    """Raise unless every name is a setting of `Experiment`, or the full name of a parameter."""
    known = list(Experiment.defaults())
    for name in settings:
        if name in known:
            continue
        if not isinstance(name, str):
            raise ExperimentError(no_such_name(name, "", known))
        setting, own = family_in(name)
        if setting and users_of(setting, own):
            continue
        if now := RENAMED.get(name) or RENAMED.get(own):
            raise ExperimentError(f"{name}: is now {now}; give that")
        raise ExperimentError(no_such_name(name, setting, known))


def check_experiment(experiment: Any) -> None:
    """Raise unless it is an `Experiment`; the message says how to make one."""
    if isinstance(experiment, Experiment):
        return
    make = "Experiment(policy='zt')"
    if isinstance(experiment, Mapping):
        make = "Experiment.from_dict(…)"
    elif isinstance(experiment, (str, Path)):
        make = "Experiment.from_toml(…)"
    raise ExperimentError(
        f"experiment={shown(experiment)}: is not an Experiment; give one, such as efhc.{make}"
    )


def _check_once(settings: Mapping[str, Any]) -> None:
    """Raise if a parameter is given twice, in an object and by its full name."""
    for name in settings:
        setting, own = family_in(name)
        if setting and hasattr(settings.get(setting), own) and setting in settings:
            raise ExperimentError(
                f"{name}={shown(settings[name])}: is given twice, also in {setting}="
                f"{shown(settings[setting])}; give it once"
            )


def _check_single(settings: Mapping[str, Any]) -> None:
    """Raise if a setting other than `budgets` has several values."""
    for name, value in settings.items():
        if isinstance(value, (list, tuple, range)) and name != "budgets":
            values = shown(value)
            axis = f"**{{{name!r}: {values}}}" if "." in name else f"{name}={values}"
            raise ExperimentError(
                f"{name}={values}: a run has one value of each setting; for several, "
                f"use efhc sweep, or efhc.sweep(experiment, {axis}) in Python"
            )


def _finite_or_word(value: Any) -> Any:
    return "inf" if isinstance(value, float) and math.isinf(value) else value
