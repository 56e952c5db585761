"""The settings of a run: `Experiment`, checked when it is created.

This module does not import JAX, so that the command line starts quickly.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import math
import numbers
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from efhc_jax.data import ADD_YOUR_OWN, DATASETS
from efhc_jax.data.splits import SPLITS
from efhc_jax.errors import ExperimentError
from efhc_jax.experiment.effects import check_effects, why_no_effect
from efhc_jax.models import MODELS
from efhc_jax.network.topologies import GRAPHS
from efhc_jax.policies import POLICIES
from efhc_jax.text.docstrings import Kind, explained
from efhc_jax.text.names import known_name, meant_field, nearest, other_fields, other_words


def _names_checked(kind: Kind) -> Kind:
    """Check names of fields with `check_names` before Python raises its own TypeError."""
    make = kind.__dict__["__init__"]

    @functools.wraps(make)
    def make_checked(self: Any, *values: Any, **fields: Any) -> None:
        check_names(fields)
        make(self, *values, **fields)

    setattr(kind, "__init__", make_checked)  # noqa: B010
    return kind


@explained
@_names_checked
@dataclass(frozen=True)
class Experiment:
    """All settings of one run. The defaults are the paper's SVM setting.

    Example:
        >>> Experiment(policy="zt", devices=20).policy
        'zt'
    """

    model: str = "svm"
    """Model that every device trains: svm, lenet5, logistic or quadratic."""
    dataset: str = "fashion_mnist"
    """Dataset: fashion_mnist (60k images), fashion_mnist_mini (5k, included) or synthetic."""
    policy: str = "efhc"
    """Policy that decides which devices broadcast: efhc, gt, zt, rg, local or central."""
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
    link_up: float = 0.8
    """Probability that a link is up, for dynamics=failures."""
    link_failure: float = 0.05
    """Probability per iteration that a link fails, for dynamics=markov."""
    link_repair: float = 0.2
    """Probability per iteration that a failed link is repaired, for dynamics=markov."""
    period: int = 5
    """Number of iterations in which every link is up once, for dynamics=periodic."""
    speed: float = 0.01
    """Distance that a device moves per iteration, for dynamics=mobility."""
    leave: float = 0.01
    """Probability per iteration that a device leaves, for dynamics=churn."""
    come_back: float = 0.05
    """Probability per iteration that an absent device comes back, for dynamics=churn."""
    absent_train: bool = False
    """Whether absent devices continue to train, for dynamics=churn."""
    graph_file: str = ""
    """File with a graph, for graph=file, or with graphs over time, for dynamics=trace."""
    allow_disconnected: bool = False
    """Whether a custom graph may be disconnected."""
    r: float = 50.0
    """Scale of the broadcast thresholds r·ρ_i·γ(k)."""
    heterogeneity: float = 0.4
    """Fraction of devices with weak bandwidth, H."""
    mean_bandwidth: float = 5000.0
    """Mean bandwidth over devices."""
    weak_bandwidth: float = 1000.0
    """Bandwidth of a weak device."""
    norm_order: float = 2.0
    """Order q of the norm in the trigger, 1 or more; inf for the largest entry."""
    learning_rate: float = 1.0
    """Scale a of the step size α(k) = a / (b + k)^c; thresholds decay with it, γ = α."""
    learning_rate_offset: float = 1.0
    """Offset b of the step size α(k)."""
    learning_rate_decay: float = 0.5
    """Exponent c of the step size α(k)."""
    budgets: tuple[float, ...] = ()
    """Cumulative transmission times at which to evaluate the accuracy."""
    seed: int = 0
    """Random seed."""

    def __post_init__(self) -> None:
        self._check()
        check_effects(self, self.defaults())

    def _check(self) -> None:
        """Check every value, alone and together with the others."""
        _check_single(vars(self))
        for name, limit in LIMITS.items():
            object.__setattr__(self, name, limit.check(name, getattr(self, name)))
        for name, family in FAMILIES.items():
            object.__setattr__(self, name, check_choice(name, getattr(self, name), family))
        object.__setattr__(self, "budgets", _check_budgets(self.budgets))
        if not _is_file_name(self.graph_file):
            raise ExperimentError(f"graph_file={_shown(self.graph_file)}: give the name of a file")
        for name in ("absent_train", "allow_disconnected"):
            if not isinstance(getattr(self, name), bool):
                raise ExperimentError(f"{name}={_shown(getattr(self, name))}: give true or false")
        if (self.dynamics == "trace" or self.graph == "file") and not self.graph_file:
            needs = "dynamics='trace'" if self.dynamics == "trace" else "graph='file'"
            raise ExperimentError(f"graph_file: {needs} needs one; give the name of the file")
        if self.dynamics == "mobility" and self.graph != "geometric":
            raise ExperimentError(f"graph={self.graph!r}: devices that move need graph='geometric'")
        if self.placement > self.connectivity:
            raise ExperimentError(
                f"placement={self.placement:g}: positions that are connected at this radius may not "
                f"be at connectivity={self.connectivity:g}; give at most that"
            )
        if self.weak_devices == self.devices and self.weak_bandwidth != self.mean_bandwidth:
            raise ExperimentError(
                f"heterogeneity={self.heterogeneity:g}: makes all {self.devices} devices weak, so "
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
    def weak_devices(self) -> int:
        """Number of weak devices: H·m, rounded to the nearest integer."""
        return math.floor(self.heterogeneity * self.devices + 0.5)

    @property
    def strong_bandwidth(self) -> float:
        """Bandwidth of the devices that are not weak, such that the mean is exact."""
        weak = self.weak_devices
        if weak == self.devices:
            return self.mean_bandwidth
        total = self.mean_bandwidth * self.devices
        return (total - self.weak_bandwidth * weak) / (self.devices - weak)

    def replace(self, **changes: Any) -> Experiment:
        """The same experiment with other values for some fields.

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
        check_names(changes)
        return self._of({**self.to_dict(), **changes})

    @classmethod
    def _of(cls, fields: Mapping[str, Any]) -> Experiment:
        """An experiment whose values are checked, but not whether they have an effect."""
        made = object.__new__(cls)
        for name, value in fields.items():
            object.__setattr__(made, name, value)
        made._check()
        return made

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """The default of every field by name."""
        return {field.name: field.default for field in dataclasses.fields(cls)}

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return dataclasses.asdict(self)

    def _repr_html_(self) -> str:
        from efhc_jax.experiment.html import experiment_html

        return experiment_html(self)

    def to_json(self) -> str:
        """The fields as strict JSON; an infinite value is the string "inf"."""
        fields = {name: _finite_or_word(value) for name, value in self.to_dict().items()}
        return json.dumps(fields, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Experiment:
        """The experiment that `to_json` wrote.

        Names that are not registered here are kept, and rejected only when the experiment is run.
        """
        try:
            fields = json.loads(text)
        except (TypeError, ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict):
            raise ExperimentError("experiment: is not a JSON object with settings")
        check_names(fields)
        stored = {
            name: math.inf if value == "inf" and name in LIMITS else value
            for name, value in fields.items()
        }
        return cls._of(cls.defaults() | as_stored(stored))

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Experiment:
        """An experiment from names and values; fields that are not given keep their defaults.

        All fields together, as `to_dict` gives them, may include some without effect.
        """
        check_names(fields)
        return cls._of(fields) if fields.keys() == cls.defaults().keys() else cls(**fields)

    @classmethod
    def from_toml(cls, path: str | Path) -> Experiment:
        """An experiment from a TOML file with the names of the fields at its top level."""
        fields = _read_toml(path)
        with _said_of(path):
            return cls.from_dict(fields)

    def to_toml(self) -> str:
        """The fields as TOML, which `from_toml` reads; those without effect as comments."""
        lines = []
        for name, value in self.to_dict().items():
            idle = value != self.defaults()[name] and why_no_effect(self, name)
            lines.append(f"{'# ' if idle else ''}{name} = {_toml_value(value)}")
        return "\n".join(lines) + "\n"


class StoredName(str):
    """A name in a stored result that is not registered here.

    The result can be read and plotted; to run it again, the member must be registered.
    """


def as_stored(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a stored result; names that are not registered here become `StoredName`."""
    known = dict(fields)
    for name, family in FAMILIES.items():
        if isinstance(known.get(name), str) and known[name] not in family:
            known[name] = StoredName(known[name])
    return known


def check_registered(experiment: Experiment) -> None:
    """Raise unless every name in the experiment is registered, so that it can be run."""
    for name in FAMILIES:
        value = getattr(experiment, name)
        if isinstance(value, StoredName) and name != "dataset":
            raise ExperimentError(
                f"{name}={str(value)!r}: is not registered here; register it as it was when the "
                f"result was made, efhc_jax.{_REGISTRIES[name]}[{str(value)!r}] = …"
            )


_REGISTRIES = {
    "model": "MODELS",
    "policy": "POLICIES",
    "graph": "GRAPHS",
    "split": "data.SPLITS",
    "dynamics": "dynamics.DYNAMICS",
}


def sweep_from_toml(path: str | Path) -> tuple[Experiment, dict[str, list[Any]]]:
    """The settings that all runs of a sweep share, and the axes: the lists in a TOML file.

    Whether a setting has an effect depends on the axes, so the sweep checks it.
    """
    fields = _read_toml(path)
    lists = {name for name, value in fields.items() if isinstance(value, list)} - {"budgets"}
    with _said_of(path):
        check_names(fields)
        axes = {name: fields[name] for name in fields if name in lists}
        shared = {name: value for name, value in fields.items() if name not in lists}
        return Experiment().inherit(shared | first_values(axes)), axes


def first_values(axes: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """The settings of the first run of a sweep on its axes."""
    return {name: values[0] for name, values in axes.items() if len(values)}


def _read_toml(path: str | Path) -> dict[str, Any]:
    try:
        with Path(path).open("rb") as file:
            content = file.read(_MOST_CONFIG_BYTES + 1)
        if len(content) <= _MOST_CONFIG_BYTES:
            return tomllib.loads(content.decode())
    except OSError as error:
        raise ExperimentError(f"config={path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ExperimentError(f"config={path}: is not text in UTF-8") from None
    except (ValueError, RecursionError) as error:  # ValueError is also a number of 5,000 digits
        raise ExperimentError(f"config={path}: is not valid TOML: {error}") from None
    raise ExperimentError(f"config={path}: is too large for a settings file")


@contextlib.contextmanager
def _said_of(path: str | Path) -> Iterator[None]:
    """Name the file in errors about its settings."""
    try:
        yield
    except ExperimentError as error:
        raise ExperimentError(f"config={path}: {error}") from None


_LARGEST = 1e30  # largest finite value: the program computes in 32 bits
_MOST_CONFIG_BYTES = 2**20


class Limit(NamedTuple):
    """Type and range of a field."""

    kind: type
    low: float
    high: float = math.inf
    above_low: bool = False  # exclude the lower bound
    below_high: bool = False  # exclude the upper bound
    infinite: bool = False  # allow inf

    def check(self, name: str, value: Any) -> Any:
        """The value converted to the field's type; raise with what is allowed if it is out of range."""
        wanted = "a whole number" if self.kind is int else "a number"
        numbers_of_kind = numbers.Integral if self.kind is int else numbers.Real
        if not isinstance(value, numbers_of_kind) or isinstance(value, bool):
            raise ExperimentError(f"{name}={_shown(value)}: give {wanted} {self}")
        try:
            number = float(value)
        except OverflowError:
            number = math.nan
        inside = self.low < number if self.above_low else self.low <= number
        inside &= number < self.high if self.below_high else number <= self.high
        if math.isinf(number) and not self.infinite:
            inside = False
        if self.kind is float and number > _LARGEST and not self.infinite:  # infinite in 32 bits
            inside = False
        if not inside:
            raise ExperimentError(f"{name}={_shown(value)}: out of range; give {wanted} {self}")
        return self.kind(value)

    def __str__(self) -> str:
        low = f"above {self.low:g}" if self.above_low else f"of {self.low:g} or more"
        if math.isinf(self.high):
            most = "" if self.kind is int else f", at most {_LARGEST:g}"
            return low + (" (inf is allowed)" if self.infinite else most)
        return f"{low}, {'below' if self.below_high else 'at most'} {self.high:g}"


LIMITS: dict[str, Limit] = {
    "devices": Limit(int, 1),
    "labels_per_device": Limit(int, 1),
    "dirichlet_alpha": Limit(float, 0, above_low=True),
    "batch_size": Limit(int, 1),
    "iterations": Limit(int, 1, 2**31 - 2),
    "eval_every": Limit(int, 1),
    "early_evaluations": Limit(int, 0, 30),
    "connectivity": Limit(float, 0, 1.5, above_low=True),
    "placement": Limit(float, 0, 1.5),
    "link_up": Limit(float, 0, 1),
    "link_failure": Limit(float, 0, 1),
    "link_repair": Limit(float, 0, 1),
    "period": Limit(int, 1, 2**31 - 1),
    "speed": Limit(float, 0, 1.5),
    "leave": Limit(float, 0, 1),
    "come_back": Limit(float, 0, 1),
    "r": Limit(float, 0, infinite=True),
    "heterogeneity": Limit(float, 0, 1, below_high=True),
    "mean_bandwidth": Limit(float, 0, above_low=True),
    "weak_bandwidth": Limit(float, 0, above_low=True),
    "norm_order": Limit(float, 1, infinite=True),
    "learning_rate": Limit(float, 0, above_low=True),
    "learning_rate_offset": Limit(float, 0, above_low=True),
    "learning_rate_decay": Limit(float, 0),
    "seed": Limit(int, 0, 2**32 - 1),
}

# The names of `dynamics.DYNAMICS`, which cannot be imported without JAX.
DYNAMICS_NAMES = ("static", "failures", "markov", "periodic", "mobility", "churn", "trace")

FAMILIES: dict[str, Iterable[str]] = {
    "model": MODELS,
    "dataset": DATASETS,
    "policy": POLICIES,
    "split": SPLITS,
    "graph": GRAPHS,
    "dynamics": DYNAMICS_NAMES,
}


_BUDGET = Limit(float, 0, above_low=True)


def _check_budgets(budgets: Any) -> tuple[float, ...]:
    if not isinstance(budgets, (list, tuple)):
        raise ExperimentError(f"budgets={_shown(budgets)}: give a list of numbers {_BUDGET}")
    return tuple(sorted({_BUDGET.check("budgets", budget) for budget in budgets}))


def _shown(value: Any) -> str:
    """A value for an error message: always short, and never itself an error."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number with thousands of digits, or deeply nested lists
        return f"({type(value).__name__} too long to show)"
    return text if len(text) <= 80 else f"{text[:79]}…"


def check_choice(field: str, value: Any, allowed: Iterable[str]) -> str:
    """The allowed name that `value` means, in any spelling; raise if there is none."""
    names = list(allowed)
    if isinstance(value, StoredName):
        return value
    known = known_name(value, names)
    if isinstance(known, str) and known in names:
        return known
    wrong = f"{field}={_shown(value)}: unknown"
    if meant := other_words(field, value):
        raise ExperimentError(f"{wrong}; {meant}")
    close = nearest(value, names)
    hint = f", did you mean {close!r}?" if close else ""
    more = f"; {ADD_YOUR_OWN}" if field == "dataset" else ""
    raise ExperimentError(f"{wrong}{hint}; choose from {', '.join(names)}{more}")


def check_names(fields: Iterable[str]) -> None:
    """Raise unless every name is a field of `Experiment`."""
    known = [field.name for field in dataclasses.fields(Experiment)]
    for name in fields:
        if name not in known:
            close = meant_field(name, known) or nearest(name, known)
            hint = f", did you mean {close!r}?" if close else f"; the fields are {', '.join(known)}"
            if advice := other_fields(name):
                hint = f"; {advice}"
            raise ExperimentError(f"{_shown(name).strip(chr(39))}: no such field{hint}")


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
        f"experiment={_shown(experiment)}: is not an Experiment; give one, such as efhc.{make}"
    )


def _check_single(fields: Mapping[str, Any]) -> None:
    """Raise if a field other than `budgets` has several values."""
    for name, value in fields.items():
        if isinstance(value, (list, tuple, range)) and name != "budgets":
            shown = _shown(value)
            raise ExperimentError(
                f"{name}={shown}: a run has one value of each setting; for several, "
                f"use efhc sweep, or efhc.sweep(experiment, {name}={shown}) in Python"
            )


def _is_file_name(value: Any) -> bool:
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()  # results and settings store it as UTF-8
    except UnicodeEncodeError:
        return False
    return True


def _finite_or_word(value: Any) -> Any:
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def _toml_value(value: Any) -> str:
    if isinstance(value, tuple):
        return repr(list(value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
