"""Comparison with other implementations and with the limits of the machine."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.processes import in_own_process, machine, now, start, versions
from benchmarks.report import Verdict
from benchmarks.timing import Contender, alternate

if TYPE_CHECKING:
    from efhc_jax.experiment.experiment import Experiment

PEERS = {
    "torch_modules": "(a) PyTorch, one module per device",
    "torch_stacked": "(b) PyTorch, stacked",
    "numpy_stacked": "(c) NumPy, stacked",
}
STACKED = ("torch_stacked", "numpy_stacked")
PYTORCH = ("torch_modules", "torch_stacked")
NAMES = {"svm": "SVM", "lenet5": "LeNet5", "cnn": "CNN of a user"}


class Work(NamedTuple):
    """One workload of the comparison."""

    model: str
    runs: int  # 1 as in `efhc run`, more as in `efhc sweep`
    iterations: int  # even, because the program unrolls two at a time
    checked: int  # iterations of the check in 64 bits
    rounds: int
    batch_size: int = 1  # samples in a mini-batch
    module_runs: int = 1  # runs of the batch that (a) computes, one after the other
    test_images: int = 0  # test images to evaluate; 0 for no evaluation
    full_data: bool = True

    @property
    def name(self) -> str:
        """The workload in words."""
        runs = "one run" if self.runs == 1 else f"batch of {self.runs}"
        samples = "" if self.batch_size == 1 else f", mini-batches of {self.batch_size}"
        return f"{NAMES[self.model]}, {runs}{samples}"


FULL = [
    Work("svm", 1, iterations=300, checked=100, rounds=7, test_images=10_000),
    Work("svm", 1, iterations=200, checked=20, rounds=5, batch_size=4),
    Work("svm", 1, iterations=100, checked=20, rounds=5, batch_size=16),
    Work("svm", 1, iterations=100, checked=10, rounds=7, batch_size=64),
    Work("svm", 64, iterations=100, checked=10, rounds=5, module_runs=2),
    Work("svm", 64, iterations=20, checked=4, rounds=5, batch_size=16),
    Work("svm", 64, iterations=10, checked=2, rounds=5, batch_size=64),
    Work("lenet5", 1, iterations=40, checked=6, rounds=5, test_images=10_000),
    Work("lenet5", 1, iterations=20, checked=4, rounds=5, batch_size=4),
    Work("lenet5", 1, iterations=10, checked=4, rounds=5, batch_size=16),
    Work("lenet5", 1, iterations=6, checked=2, rounds=5, batch_size=64),
    Work("lenet5", 16, iterations=10, checked=4, rounds=5),
    Work("lenet5", 16, iterations=2, checked=2, rounds=5, batch_size=16),
    Work("cnn", 1, iterations=20, checked=4, rounds=5),
    Work("cnn", 1, iterations=4, checked=2, rounds=5, batch_size=32),
]
QUICK = [
    Work("svm", 1, iterations=60, checked=10, rounds=2, test_images=1000, full_data=False),
    Work("svm", 64, iterations=10, checked=2, rounds=2, full_data=False),
    Work("lenet5", 1, iterations=10, checked=4, rounds=2, test_images=1000, full_data=False),
    Work("lenet5", 1, iterations=4, checked=2, rounds=2, batch_size=16, full_data=False),
    Work("lenet5", 16, iterations=2, checked=2, rounds=2, full_data=False),
    Work("cnn", 1, iterations=2, checked=2, rounds=2, batch_size=4, full_data=False),
]


def run(quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure every workload in a separate process, and compare with the targets."""
    began, parts = now(), []
    clock = time.perf_counter()
    for work in QUICK if quick else FULL:
        others = len(_peers_of(work.model))
        say(f"{work.name}: ours and {others} others, {work.iterations} iterations, alternating")
        parts.append(in_own_process(measure, work))
    works = [work for part in parts for work in part["works"]]
    return {
        "suite": "peers",
        "quick": quick,
        "began": began,
        "seconds": time.perf_counter() - clock,
        "versions": versions(),
        "machines": [part["machine"] for part in parts],
        "works": works,
        "verdicts": [verdict.to_dict() for verdict in verdicts(works)],
    }


def measure(work: Work) -> dict[str, Any]:
    """Measure one workload in a process whose JAX has not started: agreement first, then time."""
    start(work.runs)
    return measure_here(work)


def measure_here(work: Work) -> dict[str, Any]:
    """The same in this process."""
    import jax

    from benchmarks.agreement import check_agreement, check_evaluation
    from benchmarks.data import images_of_paper
    from benchmarks.limits import iteration_flops, pass_bytes
    from benchmarks.ours import batch_of, one_run, problem_of

    data = images_of_paper(max(work.test_images, 1), work.full_data)
    experiment = _experiment(work)
    peers = {name: importlib.import_module(f"benchmarks.peers.{name}") for name in _peers_of(work.model)}

    def ours_for(iterations: int) -> Any:
        if work.runs == 1:
            return one_run(experiment, data, iterations)
        return batch_of(experiment, data, iterations, work.runs)

    with jax.enable_x64(True):
        checked = ours_for(work.checked)
        agreement = check_agreement(checked, problem_of(checked, data), peers).to_dict()
        if work.test_images:
            agreement["accuracy"] = check_evaluation(checked, data, peers)
    ours = ours_for(work.iterations)
    problem = problem_of(ours, data)
    timings, rates, links = _time_iterations(work, ours, problem, peers)
    common = {
        "model": work.model,
        "devices": experiment.devices,
        "batch_size": experiment.batch_size,
        "parameters": ours.parameters,
        "dataset": data.name,
        "agreement": agreement,
        "product_rates": rates,
    }
    size = (ours.parameters, experiment.devices)
    works = [
        common
        | {
            "name": work.name,
            "kind": "iterations",
            "runs": work.runs,
            "iterations": work.iterations,
            "accelerators": ours.spec.layout.accelerators,
            "block": ours.spec.layout.block or work.runs,
            "compile_seconds": ours.compile_seconds,
            "memory_bytes": ours.memory,
            "links_used": links,
            "flops": iteration_flops(work.model, *size, experiment.batch_size, links),
            "bytes": pass_bytes(*size),
            "timings": timings,
        }
    ]
    if work.test_images:
        works.append(common | _evaluation(work, ours, problem, data, peers))
    return {"machine": machine(), "works": works}


def _peers_of(model: str) -> list[str]:
    """The implementations of a model: the CNN's gradient is not derived by hand."""
    return [name for name in PEERS if model != "cnn" or name in PYTORCH]


def _experiment(work: Work) -> Experiment:
    """The paper's experiment of a model; that of the CNN has 20 devices."""
    from efhc_jax.papers.efhc.settings import curves

    if work.model == "cnn":
        importlib.import_module("benchmarks.cnn")  # registers it
        paper = curves("lenet5", "paper").experiment
        experiment = paper.replace(model="cnn", devices=20, learning_rate=0.05)  # it diverges at 1
    else:
        experiment = curves(work.model, "paper").experiment
    return experiment.replace(batch_size=work.batch_size)


def _does(work: Callable[..., Any], *arguments: Any) -> Contender:
    return Contender(lambda _: work(*arguments))


def _time_iterations(
    work: Work, ours: Any, problem: Any, peers: dict[str, ModuleType]
) -> tuple[dict[str, Any], dict[str, float], float]:
    """Seconds per run-iteration of each contender, rates of matrix products, and links in use."""
    from benchmarks.limits import matrix_products, pass_over_models, product_flops
    from benchmarks.peers.problem import blocks

    layout = ours.spec.layout
    weights = ours.progress.state.weights
    contenders = {"ours": ours.contender()}
    share = {"ours": 1 / (work.iterations * work.runs)}
    for name, peer in peers.items():
        some = work.module_runs if name == "torch_modules" else work.runs
        part = next(blocks(problem, some))
        contenders[name] = _does(peer.run, part, "float32", peer.load(part))
        share[name] = 1 / (work.iterations * some)
    layouts = {"pass": layout._replace(block=0)}
    if layout.block and layout.block * layout.accelerators < ours.runs:
        layouts["pass in blocks"] = layout
    for name, where in layouts.items():
        contenders[name] = pass_over_models(where, weights, work.iterations)
        share[name] = share["ours"]
    products = matrix_products(layout)
    timed = alternate(contenders | products, work.rounds)
    timings = {name: timed[name].to_dict(share[name]) for name in contenders}
    rates = {name: product_flops(name, layout) / timed[name].best for name in products}
    _, recorded = ours.advanced(ours.fresh())
    return timings, rates, float(recorded["links_used"].mean())


def _evaluation(
    work: Work, ours: Any, problem: Any, data: Any, peers: dict[str, ModuleType]
) -> dict[str, Any]:
    """Seconds of an evaluation of all devices, with the initial models."""
    from benchmarks.limits import forward_flops, matrix_products, product_flops
    from benchmarks.ours import evaluation

    weights, layout = problem.weights[0], ours.spec.layout
    contenders = {"ours": evaluation(ours, data)}
    for name, peer in peers.items():
        contenders[name] = _does(peer.evaluate, work.model, weights, data.test_images, data.test_labels)
    products = matrix_products(layout)
    timed = alternate(contenders | products, max(2, work.rounds - 2))
    models = len(weights) + 1  # ours evaluates the average model as well
    return {
        "name": f"{NAMES[work.model]}, evaluation",
        "kind": "evaluation",
        "runs": 1,
        "images": work.test_images,
        "flops": models * work.test_images * forward_flops(work.model, ours.parameters),
        "timings": {name: timed[name].to_dict() for name in contenders},
        "product_rates": {name: product_flops(name, layout) / timed[name].best for name in products},
    }


# Targets ---------------------------------------------------------------------------------------------


class Target(NamedTuple):
    """Targets of a workload; None without a target."""

    modules: float | None = None  # times faster than (a)
    stacked: float | None = None  # times faster than the faster of (b) and (c)
    pytorch: float | None = None  # times faster than the faster of (a) and (b)
    passes: float | None = None  # at most this many times a pass over W and Ŵ
    rate: float | None = None  # at least this fraction of the rate of matrix products


# Of the paper's mini-batches of one sample, and of evaluations.
TARGETS = {
    ("svm", "one run"): Target(60, 10),
    ("svm", "batch"): Target(100, 5, passes=1.5),
    ("lenet5", "one run"): Target(15, 3),
    ("lenet5", "batch"): Target(30, 4, rate=0.15),
    ("svm", "evaluation"): Target(stacked=2, rate=0.5),
    ("lenet5", "evaluation"): Target(stacked=2, rate=0.25),
}
PYTORCH_TARGETS = {"svm": 2.0, "lenet5": 1.5, "cnn": 1.0}  # of mini-batches of every size


def target_of(work: dict[str, Any]) -> Target:
    """The targets of a workload."""
    model, batch_size = work["model"], work["batch_size"]
    if work["kind"] == "evaluation":
        return TARGETS[model, "evaluation"]
    if batch_size == 1 and model != "cnn":
        target = TARGETS[model, "batch" if work["runs"] > 1 else "one run"]
    else:
        target = Target(rate=0.2 if model == "lenet5" and batch_size >= 16 else None)
    return target._replace(pytorch=PYTORCH_TARGETS[model])


def verdicts(works: list[dict[str, Any]]) -> list[Verdict]:
    """Every target with the measured value."""
    return [verdict for work in works for verdict in _verdicts_of(work)]


def _verdicts_of(work: dict[str, Any]) -> list[Verdict]:
    target, name, found = target_of(work), work["name"], []
    best = {one: timing["best"] for one, timing in work["timings"].items()}
    ours = best["ours"]
    if target.modules is not None:
        speed = best["torch_modules"] / ours
        found.append(Verdict(name, "times as fast as (a)", speed, target.modules))
    rivals = [(STACKED, "stacked", target.stacked), (PYTORCH, "PyTorch", target.pytorch)]
    for among, kind, aim in rivals:
        if aim is not None:
            rival = min(among, key=lambda one: best[one])
            against = f"times as fast as {PEERS[rival][:3]}, the faster {kind} one"
            found.append(Verdict(name, against, best[rival] / ours, aim))
    if target.passes is not None:
        against = "times as long as one pass over W and Ŵ"
        found.append(Verdict(name, against, ours / best["pass"], target.passes, at_least=False))
        if "pass in blocks" in best:
            passes = ours / best["pass in blocks"]
            against = "times as long as that pass in blocks"
            found.append(Verdict(name, against, passes, None, at_least=False))
    if target.rate is not None:
        share = work["flops"] / ours / max(work["product_rates"].values())
        against = "of the machine's matrix-product rate"
        found.append(Verdict(name, against, share, target.rate, percent=True))
    return found
