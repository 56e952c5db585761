"""Time of an iteration of each method, compressor and optimizer, against gossip."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from benchmarks.processes import in_own_process, machine, now, start, versions
from benchmarks.report import Verdict
from efhc_jax.errors import EfhcError

MOST = 1.5  # times gossip, for each array that a method mixes
KINDS = ("method", "compressor", "optimizer")


class Variant(NamedTuple):
    """A method, compressor or optimizer that is timed.

    Attributes:
        name: in tables.
        kind: whether it is there for its method, compressor or optimizer.
        settings: of the experiment, apart from the defaults.
        against: the variant that its time is compared with.
    """

    name: str
    kind: str
    settings: dict[str, Any]
    against: str = "gossip"


def _method(name: str, **own: Any) -> Variant:
    return Variant(name, "method", {"method": name} | {f"method.{key}": own[key] for key in own})


def _compressor(name: str) -> Variant:
    settings = {"method": "copies", "method.compressor": name}
    return Variant(f"copies, {name}", "compressor", settings, "copies")


# Compressors are timed apart, so the methods that use one by default have none here.
VARIANTS = (
    Variant("gossip", "method", {}),
    _method("copies"),
    _method("choco", compressor="none"),
    _method("sparq", compressor="none"),
    *(_method(name) for name in ("tracking", "d2", "extra", "qg_momentum")),
    *(_compressor(name) for name in ("top_k", "random_k", "sign", "qsgd")),
    *(
        Variant(f"gossip, {name}", "optimizer", {"optimizer": name})
        for name in ("momentum", "nesterov", "adam")
    ),
)


class Size(NamedTuple):
    """A size at which everything is timed."""

    model: str
    runs: int  # 1 as in `efhc run`, more as in `efhc sweep`
    iterations: int  # even, because the program unrolls two at a time
    rounds: int
    full_data: bool = True

    @property
    def name(self) -> str:
        """The size in words."""
        model = {"svm": "SVM", "lenet5": "LeNet5"}[self.model]
        return f"{model}, {'one run' if self.runs == 1 else f'batch of {self.runs}'}"


FULL = [Size("svm", 1, 300, 7), Size("svm", 64, 40, 7), Size("lenet5", 1, 40, 5)]
QUICK = [
    Size("svm", 1, 40, 2, full_data=False),
    Size("svm", 64, 4, 2, full_data=False),
    Size("lenet5", 1, 4, 2, full_data=False),
]


def run(quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure each size in a separate process, and count the programs of each method in another."""
    began, clock = now(), time.perf_counter()
    parts = []
    for size in QUICK if quick else FULL:
        say(f"{size.name}: {len(VARIANTS)} methods, compressors and optimizers, alternating")
        parts.append(in_own_process(measure, size))
    say("programs of each method for all policies, parameters and seeds")
    programs = in_own_process(count_programs)
    works = [part["work"] for part in parts]
    return {
        "suite": "methods",
        "quick": quick,
        "began": began,
        "seconds": time.perf_counter() - clock,
        "versions": versions(),
        "machines": [part["machine"] for part in parts],
        "works": works,
        "programs": programs,
        "verdicts": [verdict.to_dict() for verdict in verdicts(works, programs)],
    }


def measure(size: Size) -> dict[str, Any]:
    """Measure one size in a process whose JAX has not started."""
    start(size.runs)
    return measure_here(size)


def measure_here(size: Size, variants: Sequence[Variant] = VARIANTS) -> dict[str, Any]:
    """The same in this process."""
    from benchmarks.data import images_of_paper
    from benchmarks.ours import batch_of, one_run
    from benchmarks.timing import alternate
    from efhc_jax.methods import METHODS
    from efhc_jax.papers.efhc.settings import curves

    data = images_of_paper(1, size.full_data)
    # At the paper's step size some methods diverge, because EF-HC changes the network all the time.
    paper = curves(size.model, "paper").experiment.replace(learning_rate=0.05)
    made: dict[str, Any] = {}
    for variant in variants:
        experiment = paper.replace(**variant.settings)
        if size.runs == 1:
            one = one_run(experiment, data, size.iterations)
        else:
            one = batch_of(experiment, data, size.iterations, size.runs)
        first = next(iter(made.values()), one)
        made[variant.name] = one._replace(train=first.train)  # in memory once
    for name, one in made.items():
        _, recorded = one.advanced(one.fresh())
        if not recorded["finite"].all():
            raise EfhcError(f"bench: {name} diverged in {size.name}; nothing was timed")
    timed = alternate({name: one.contender() for name, one in made.items()}, size.rounds)
    share = 1 / (size.iterations * size.runs)
    found = [
        {
            "name": variant.name,
            "kind": variant.kind,
            "against": variant.against,
            "arrays": METHODS[variant.settings.get("method", "gossip")].arrays,
            "compile_seconds": made[variant.name].compile_seconds,
            "memory_bytes": made[variant.name].memory,
            "timing": timed[variant.name].to_dict(share),
        }
        for variant in variants
    ]
    parameters = next(iter(made.values())).parameters
    work = {"name": size.name, "parameters": parameters, "dataset": data.name, "variants": found}
    return {"machine": machine(), "work": size._asdict() | work}


def ratio(work: dict[str, Any], variant: dict[str, Any]) -> float:
    """The best time of a variant, times that of the variant that it is compared with."""
    base = next(one for one in work["variants"] if one["name"] == variant["against"])
    return float(variant["timing"]["best"] / base["timing"]["best"])


# Compilations ----------------------------------------------------------------------------------------

# Values of each method's own parameters.
VALUES: dict[str, dict[str, Sequence[Any]]] = {
    "gossip": {},
    "copies": {"gamma": (0.5, 1.0)},
    "choco": {"ratio": (0.1, 0.5), "gamma": (0.1, 0.5)},
    "sparq": {"ratio": (0.1, 0.5), "gamma": (0.1, 0.5)},
    "tracking": {},
    "d2": {},
    "extra": {},
    "qg_momentum": {"beta": (0.5, 0.9), "mu": (0.1, 0.5)},
}


def count_programs(methods: Sequence[str] = tuple(VALUES)) -> list[dict[str, Any]]:
    """The programs that a sweep of each method compiles for its iterations."""
    import warnings

    from efhc_jax.data import load_dataset
    from efhc_jax.engine.program import advance
    from efhc_jax.experiment.experiment import Experiment
    from efhc_jax.methods import METHODS
    from efhc_jax.policies import POLICIES
    from efhc_jax.runs.grid import Grid
    from efhc_jax.runs.sweeps import sweep

    data, found = load_dataset("synthetic"), []
    for name in methods:
        method = METHODS[name]
        base = Experiment(method=name, dataset="synthetic", devices=4, iterations=4, eval_every=4)
        axes: dict[str, Any] = {"seed": range(2), "learning_rate": (0.01, 0.02)}
        if not method.always_sends:
            axes["policy"] = [
                each for each in POLICIES if not (method.keeps_copies and POLICIES[each].coordinated)
            ]
        axes |= {f"method.{key}": values for key, values in VALUES[name].items()}
        before = advance._cache_size()  # type: ignore[attr-defined]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that theory asks for a fixed network
            sweep(base, data, progress=False, **axes)
        found.append(
            {
                "method": name,
                "runs": len(Grid.of(base, axes).experiments),
                "axes": list(axes),
                "programs": advance._cache_size() - before,  # type: ignore[attr-defined]
            }
        )
    return found


# Targets ---------------------------------------------------------------------------------------------


def verdicts(works: list[dict[str, Any]], programs: list[dict[str, Any]]) -> list[Verdict]:
    """Every target with the measured value."""
    found = []
    for work in works:
        for one in work["variants"]:
            if one["kind"] == "method" and one["name"] != one["against"]:
                value = ratio(work, one) / one["arrays"]
                against = "times gossip, per array that it mixes"
                found.append(
                    Verdict(f"{work['name']}, {one['name']}", against, value, MOST, at_least=False)
                )
    for one in programs:
        against = f"programs compiled for {one['runs']} runs"
        found.append(Verdict(one["method"], against, one["programs"], 1, at_least=False))
    return found
