"""The variables of a result, each declared once, for storage, checks, plots, loggers and the docs."""

from __future__ import annotations

from typing import NamedTuple

_STEP, _EVALUATION = ("step",), ("evaluation",)


class Variable(NamedTuple):
    """A variable of a result.

    Attributes:
        dimensions: its dimensions in a run; a sweep has one more per axis.
        description: one line, stored with it.
        unit: its unit; a dimensionless number by default.
        recorded: the results that have it: "always", with "budgets", with an "audit" or a "trace", or
            only a "sweep".
        title: its label in figures; its name by default.
        logged: whether it is logged during a run, as a mean over devices and iterations.
    """

    dimensions: tuple[str, ...]
    description: str
    unit: str = "1"
    recorded: str = "always"
    title: str = ""
    logged: bool = False


VARIABLES: dict[str, Variable] = {
    "accuracy": Variable(
        ("evaluation", "device"),
        "share of the test set that each device's own model gets right",
        title="test accuracy, mean over devices (%)",
        logged=True,
    ),
    "test_loss": Variable(
        ("evaluation", "device"),
        "mean loss of each device's own model on the test set",
        title="test loss, mean over devices",
        logged=True,
    ),
    "mean_model_accuracy": Variable(
        _EVALUATION,
        "share of the test set that the average of all models gets right",
        title="test accuracy of the average model (%)",
        logged=True,
    ),
    "consensus_error": Variable(
        _EVALUATION,
        "distance of the models from their average, ‖W − 1w̄ᵀ‖_F / √m",
        title="consensus error",
        logged=True,
    ),
    "global_loss": Variable(
        _EVALUATION,
        "F of the average model: mean over devices of the mean loss on their training data",
        recorded="audit",
        logged=True,
    ),
    "broadcasts": Variable(
        ("evaluation", "device"), "number of broadcasts of each device so far", logged=True
    ),
    "transmission_time": Variable(
        _STEP,
        "mean over devices of their transmission time, (1/m) Σ_i (Σ_j v_ij/d_i)·n/b_i",
        unit="n / bandwidth",
        title="transmission time per iteration",
        logged=True,
    ),
    "messages": Variable(_STEP, "number of messages, each over one link in one direction", logged=True),
    "bits": Variable(_STEP, "bits of all messages", unit="bit", title="bits sent", logged=True),
    "train_loss": Variable(
        _STEP,
        "mean over devices of the mini-batch loss, before the step",
        title="training loss",
        logged=True,
    ),
    "links_used": Variable(_STEP, "number of links that carried parameters", logged=True),
    "new_links_used": Variable(_STEP, "number of links used only because they are new (Event 1)"),
    "new_link_time": Variable(
        _STEP, "part of the transmission time that new links took", unit="n / bandwidth"
    ),
    "gradient_norm": Variable(
        ("step", "device"), "2-norm of each device's gradient", recorded="audit", logged=True
    ),
    "largest_gradient": Variable(
        ("step", "device"), "largest entry of each device's gradient", recorded="audit"
    ),
    "accuracy_at_budget": Variable(
        ("budget", "device"),
        "accuracy after the iteration that reached the budget; NaN if none did",
        recorded="budgets",
    ),
    "iteration_at_budget": Variable(
        ("budget",), "number of iterations until the budget was reached, or -1", recorded="budgets"
    ),
    "bandwidth": Variable(
        ("device",), "b_i, average bandwidth of a device's links", unit="parameters / time"
    ),
    "degree": Variable(
        ("device",),
        "d_i, number of neighbours in the graph before its dynamics, or in the first graph of a trace",
    ),
    "weights": Variable(("instant", "device", "parameter"), "W(k), from k = 0", recorded="trace"),
    "last_broadcast": Variable(
        ("instant", "device", "parameter"),
        "Ŵ(k), the models last broadcast, from k = 0",
        recorded="trace",
    ),
    "adjacency": Variable(("step", "device", "neighbor"), "A(k), physical links", recorded="audit"),
    "used_links": Variable(
        ("step", "device", "neighbor"), "v_ij(k), links that carried parameters", recorded="audit"
    ),
    "fired": Variable(("step", "device"), "v_i(k), devices that broadcast", recorded="audit"),
    "sample": Variable(
        ("step", "device", "batch"), "indices into the training set of each mini-batch", recorded="trace"
    ),
    "diverged_at": Variable(
        (), "iteration with the first model that is not finite, or -1", recorded="sweep"
    ),
}

DIMENSIONS = {name: variable.dimensions for name, variable in VARIABLES.items()}


def title_of(name: str) -> str:
    """The label of a variable in figures."""
    return (VARIABLES[name].title if name in VARIABLES else "") or name
