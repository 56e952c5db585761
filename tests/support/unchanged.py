"""Digests of the results of many short runs, to notice a change of any value.

`python tests/support/unchanged.py` writes `unchanged.json`, after a change of values that is intended.
Equal bits are promised on the same hardware with the same versions only; elsewhere, means are compared.
"""

import hashlib
import json
import platform
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np

import efhc_jax as efhc

FILE = Path(__file__).with_name("unchanged.json")
LINKS = Path(__file__).parent / "links.csv"
WHEEL = Path(__file__).parent / "wheel.csv"

SVM = {"dataset": "synthetic", "iterations": 24, "eval_every": 8, "r": 500.0}
MANY = SVM | {"devices": 80, "split": "iid", "iterations": 8}  # stored as neighbour lists
POLICIES = ["efhc", "gt", "zt", "rg", "local", "central"]
SHORT = {"dataset": "synthetic", "iterations": 6, "eval_every": 3, "devices": 4, "connectivity": 0.8}

RUNS = {
    "svm": SVM,
    "mini-batches": SVM | {"batch_size": 4, "learning_rate": 0.5},
    "schedule": SVM | {"learning_rate_schedule.offset": 10.0, "learning_rate_schedule.exponent": 0.7},
    "budgets": SVM | {"budgets": (1.0, 10.0), "early_evaluations": 2},
    "iid": SVM | {"split": "iid"},
    "dirichlet": SVM | {"split": "dirichlet", "dirichlet_alpha": 0.3},
    "labels": SVM | {"labels_per_device": 3},
    "norm 1": SVM | {"norm_order": 1.0},
    "norm 3": SVM | {"norm_order": 3.0},
    "norm inf": SVM | {"norm_order": float("inf")},
    "bandwidths": SVM | {"weak_fraction": 0.7, "weak_bandwidth": 100.0, "mean_bandwidth": 900.0},
    "failures": SVM | {"dynamics": "failures", "dynamics.up_probability": 0.5},
    "markov": SVM | {"dynamics": "markov", "dynamics.failure": 0.3},
    "periodic": SVM | {"dynamics": "periodic", "dynamics.period": 3},
    "mobility": SVM | {"dynamics": "mobility", "dynamics.speed": 0.1},
    "churn": SVM | {"dynamics": "churn", "dynamics.leave_probability": 0.3},
    "churn that trains": SVM
    | {"dynamics": "churn", "dynamics.leave_probability": 0.3, "dynamics.train_while_absent": True},
    "trace": SVM | {"dynamics": "trace", "graph_file": str(LINKS)},
    "file": SVM | {"graph": "file", "graph_file": str(WHEEL)},
    "many devices": MANY | {"connectivity": 0.25},
    "many that move": MANY | {"connectivity": 0.25, "dynamics": "mobility", "dynamics.speed": 0.05},
    "many that fail": MANY | {"graph": "ring", "dynamics": "markov", "dynamics.failure": 0.3},
    "lenet5": SHORT | {"model": "lenet5", "batch_size": 2},
    "logistic": SHORT | {"model": "logistic"},
    "quadratic": SHORT | {"model": "quadratic", "learning_rate": 0.01},
}
RUNS |= {
    "constant steps": SVM | {"learning_rate_schedule": "constant", "learning_rate": 0.1},
    "cosine steps": SVM | {"learning_rate_schedule": "cosine", "learning_rate_schedule.final": 0.1},
    "other thresholds": SVM | {"threshold_schedule": "power", "threshold_schedule.exponent": 0.9},
    "neighbors": SVM | {"graph": "watts_strogatz", "devices": 12, "graph.neighbors": 6, "split": "iid"},
}
WITHOUT_R = {name: value for name, value in SVM.items() if name != "r"}
RUNS |= {f"policy {name}": WITHOUT_R | {"policy": name} for name in [*POLICIES[1:], "adaptive"]}
RUNS |= {
    f"graph {name}": SVM | {"graph": name}
    for name in (
        *("ring", "complete", "star", "grid", "exponential"),
        *("barabasi_albert", "erdos_renyi", "watts_strogatz"),
    )
}
COPIES = {"method": "copies", "method.compressor": "qsgd", "method.gamma": 0.3}
SOME_TRAIN = {"participation": "sporadic", "participation.gradients": "beta"}
RUNS |= {
    "copies": SVM | COPIES | SOME_TRAIN | {"participation.links": "one", "dynamics": "markov"},
    "choco": WITHOUT_R | {"method": "choco", "optimizer": "adam", "learning_rate": 0.1},
    "sparq": SVM | {"method": "sparq", "optimizer": "nesterov", "local_steps": 2},
    "sporadic": SVM | SOME_TRAIN | {"participation.links": "normal", "optimizer": "momentum"},
}
RUNS |= {f"method {name}": SVM | {"method": name} for name in ("tracking", "d2", "extra", "qg_momentum")}

SWEEPS = {
    "policies": (SVM, {"policy": POLICIES, "seed": [0, 1, 2]}),
    "settings": (SVM, {"r": [5.0, 500.0], "weak_fraction": [0.2, 0.8], "connectivity": [0.4, 0.9]}),
    "splits": (SVM, {"split": ["labels", "iid", "dirichlet"], "seed": [4, 5]}),
    "parameters": (
        WITHOUT_R | {"dynamics": "markov"},
        {"policy": ["efhc", "adaptive"], "policy.rate": [0.2, 0.5], "dynamics.failure": [0.1, 0.4]},
    ),
    "models": (SHORT, {"model": ["svm", "lenet5", "logistic"]}),
}


def here():
    """The hardware and versions on which bits are equal."""
    flags = ""
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        flags = next((line for line in lines if line.startswith("flags")), "")
    cpu = hashlib.sha256(flags.encode()).hexdigest()[:12]
    versions = {name: version(name) for name in ("jax", "jaxlib", "numpy")}
    return {"machine": platform.machine(), "cpu": cpu, "python": sys.version.split()[0]} | versions


def run(name):
    """One of the runs, with all that an audit records."""
    return efhc.simulate(efhc.Experiment(**RUNS[name]), audit=True, progress=False)


def sweep(name):
    """One of the sweeps."""
    fields, axes = SWEEPS[name]
    return efhc.sweep(efhc.Experiment(**fields), runs_at_once=4, progress=False, **axes)


def summary(result):
    """A digest and the mean of every variable."""
    return {
        str(name): {
            "digest": hashlib.sha256(values.values.tobytes()).hexdigest()[:16],
            "mean": float(np.nanmean(values.values.astype(np.float64))),
        }
        for name, values in sorted(result.variables.items())
        if values.dtype.kind in "fiub"
    }


def main():
    """Write all digests; if none has changed, this CPU is added to those that give the same bits."""
    stored = json.loads(FILE.read_text())
    found = {"on": here(), "runs": {}, "sweeps": {}}
    found["runs"] = {name: summary(run(name)) for name in RUNS}
    found["sweeps"] = {name: summary(sweep(name)) for name in SWEEPS}
    same = all(found[part] == stored[part] for part in ("runs", "sweeps"))
    found["on"]["cpu"] = sorted({found["on"]["cpu"], *(stored["on"]["cpu"] if same else [])})
    FILE.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
