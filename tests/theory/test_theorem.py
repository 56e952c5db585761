"""Theorem 1 itself, where the optimum is known: models agree, and their average becomes the best one.

Stated: with c = 0.75 both the consensus error and F(w̄) − F* fall at least twenty-five-fold within
4,000 iterations, under every dynamics and every policy that communicates; without it neither does.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import efhc_jax as efhc
import small
from efhc_jax.engine.evaluation import evaluate_mean_models
from efhc_jax.engine.program import Samples, advance, initialise
from efhc_jax.engine.recording import record_summary
from efhc_jax.models import make_model
from efhc_jax.network.dynamics import DYNAMICS
from efhc_jax.runs.prepare import make_spec, prepare, split_of, stack
from efhc_jax.theory.optimum import find_optimum

ITERATIONS, FACTOR = 4_000, 25
POLICIES = ["efhc", "gt", "zt", "rg"]
BASE = efhc.Experiment(
    devices=6,
    connectivity=0.6,
    split="dirichlet",
    dirichlet_alpha=1.0,
    batch_size=4,
    iterations=ITERATIONS,
    **{"learning_rate_schedule.exponent": 0.75},
    r=2000.0,
).inherit(  # for the dynamics to come
    {
        "dynamics.up_probability": 0.5,
        "dynamics.failure": 0.2,
        "dynamics.repair": 0.3,
        "dynamics.period": 4,
        "dynamics.speed": 0.03,
        "dynamics.leave_probability": 0.02,
        "dynamics.return_probability": 0.2,
        "dynamics.train_while_absent": True,
    }
)
LEARNING_RATES = {"quadratic": 0.5, "logistic": 1.0}


@pytest.fixture(scope="module")
def data():
    return small.overlapping(120)


@pytest.fixture(scope="module")
def graph_file(tmp_path_factory):
    """Random graphs, one an iteration."""
    upper = np.triu(np.random.default_rng(0).random((ITERATIONS, 6, 6)) < 0.3, 1)
    path = tmp_path_factory.mktemp("graphs") / "graphs.npy"
    np.save(path, upper | upper.transpose(0, 2, 1))
    return str(path)


def ends_of(experiment, policies, data):
    """(consensus error, F(w̄)) before the first and after the last iteration, for each policy."""
    spec = make_spec(experiment, data)
    values = stack(
        [prepare(experiment.replace(policy=policy), data) for policy in policies], spec.dynamics
    )
    train = jax.tree.map(jnp.asarray, Samples(data.train_images, data.train_labels))
    begin = initialise(spec, values)
    first = measured(spec, values, begin.state, train)
    end, *_ = advance(spec, record_summary, ITERATIONS, values, begin, None, jnp.int32(0), train)
    share = np.asarray(end.state.broadcasts).mean(1) / ITERATIONS
    return first, measured(spec, values, end.state, train), share


def measured(spec, values, states, train):
    rows = np.asarray(states.weights)
    apart = np.sqrt(((rows - rows.mean(1, keepdims=True)) ** 2).sum((1, 2, 3)) / rows.shape[1])
    return apart, np.asarray(evaluate_mean_models(spec, values, states, train)["global_loss"])


@pytest.mark.parametrize("dynamics", DYNAMICS)
@pytest.mark.parametrize("model", LEARNING_RATES)
def test_theorem_1(data, graph_file, model, dynamics):
    experiment = BASE.replace(
        model=model,
        dynamics=dynamics,
        learning_rate=LEARNING_RATES[model],
        graph_file=graph_file if dynamics == "trace" else "",
    )
    convex = make_model(model, data.image_shape, data.classes)
    best = find_optimum(convex, data, split_of(experiment, data))
    policies = [*POLICIES, "local"]
    (apart, loss), (apart_then, loss_then), share = ends_of(experiment, policies, data)
    agreed, improved = apart / apart_then, (loss - best.value) / (loss_then - best.value)
    assert (improved > 0).all(), "nobody is better than the best"
    for position, policy in enumerate(POLICIES):
        assert agreed[position] > FACTOR, policy
        assert improved[position] > FACTOR, policy
    assert max(agreed[-1], improved[-1]) < FACTOR, "without communication"
    assert share[0] < 0.9, "thresholds do keep devices silent"
