"""The audit of whole runs, and the theorem itself on problems whose optimum is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import efhc_jax as efhc
from efhc_jax.models import make_model
from efhc_jax.models.base import normalise
from efhc_jax.models.quadratic import optimum
from efhc_jax.scenario import prepare

BASE = efhc.Experiment(
    devices=6, connectivity=0.6, iterations=60, eval_every=10, batch_size=2, r=400.0, learning_rate=0.5
)


def findings_of(experiment, data):
    run = efhc.simulate(experiment, data, audit=True)
    return {finding.name.split(" (")[0]: finding for finding in efhc.audit(run, data)}, run


def test_the_papers_own_step_size_is_outside_the_theorem(tiny):
    found, _ = findings_of(BASE, tiny)
    assert found["squared step sizes sum"].verdict == "does not hold"
    assert "paper's own" in found["squared step sizes sum"].figure
    inside, _ = findings_of(BASE.replace(learning_rate_decay=0.75), tiny)
    assert inside["squared step sizes sum"].verdict == "holds"


def test_a_periodic_network_has_the_window_it_was_given(tiny):
    path = BASE.replace(graph="star", dynamics="periodic", period=5)  # five links, one at a time
    found, run = findings_of(path, tiny)
    assert found["connectivity of the physical graph"].value == 5
    assert int(run.adjacency.sum(("device", "neighbor")).max()) == 2


def test_waits_are_those_of_the_broadcasts(tiny):
    found, run = findings_of(BASE, tiny)
    for device, wait in enumerate(found["bounded waits between broadcasts"].value):
        moments = [-1, *np.flatnonzero(run.fired.values[:, device]), 60]
        assert wait == max(np.diff(moments))


@pytest.mark.parametrize("policy", ["local", "central", "rg"])
def test_every_policy_can_be_audited(tiny, policy):
    found, _ = findings_of(BASE.replace(policy=policy), tiny)
    assert ("transition weights" in found) == (policy != "central")
    if policy == "local":
        assert found["connectivity of the information flow"].value is None, "never connected"


def test_a_run_that_kept_too_little_is_refused(tiny):
    with pytest.raises(efhc.ExperimentError, match="efhc run --audit"):
        efhc.audit(efhc.simulate(BASE, tiny), tiny)


def test_the_guideline_is_that_of_remark_2(tiny):
    found = efhc.suggest_r(BASE, 4, tiny)
    assert found.r == pytest.approx(5000 * 4 * found.largest_gradient, rel=1e-5)
    assert found.interval >= 4


def global_gap(model, experiment, data, rows, best):
    """F(w̄) − F* for each of several sets of models (…, device, parameter)."""
    shards = prepare(experiment, data).shards
    owned = [
        np.asarray(shards.pool[start : start + count])
        for start, count in zip(shards.start, shards.count, strict=True)
    ]
    images = normalise(jnp.asarray(data.train_images))

    def objective(row):
        parts = [
            jnp.mean(model.loss(model.logits(row, images[o]), jnp.asarray(data.train_labels[o])))
            for o in owned
        ]
        return sum(parts) / len(parts)

    return [float(objective(jnp.asarray(row).mean(0)) - objective(jnp.asarray(best))) for row in rows]


@pytest.fixture(scope="module")
def problem(tiny):
    """The quadratic problem, over devices that hold different labels, and its optimum."""
    experiment = efhc.Experiment(
        model="quadratic",
        devices=6,
        connectivity=0.6,
        split="dirichlet",
        dirichlet_alpha=1.0,
        batch_size=2,
        iterations=3000,
        eval_every=3000,
        learning_rate=0.5,
        learning_rate_decay=0.75,
        link_up=0.5,
        link_failure=0.2,
        link_repair=0.3,
        period=4,
        speed=0.03,
        leave=0.02,
        come_back=0.2,
        absent_train=True,
    )
    shards = prepare(experiment, tiny).shards
    owned = [
        np.asarray(shards.pool[start : start + count])
        for start, count in zip(shards.start, shards.count, strict=True)
    ]
    images = np.asarray(normalise(jnp.asarray(tiny.train_images)))
    return experiment, optimum(images, tiny.train_labels, owned)


def ends_of(experiment, data):
    """The models before the first and after the last iteration."""
    from efhc_jax.program import Samples, advance, initialise, make_spec, record_summary
    from efhc_jax.scenario import stack

    spec = make_spec(experiment, data)
    hypers = stack([prepare(experiment, data)])
    states = initialise(spec, hypers)
    first = np.asarray(states.weights[0])
    train = jax.tree.map(jnp.asarray, Samples(data.train_images, data.train_labels))
    states, *_ = advance(
        spec, record_summary, experiment.iterations, hypers, states, None, jnp.int32(0), train
    )
    return first, np.asarray(states.weights[0])


def spread(rows):
    return np.linalg.norm(rows - rows.mean(0)) / np.sqrt(len(rows))


DYNAMICS = ["static", "failures", "markov", "periodic", "mobility", "churn"]


@pytest.mark.parametrize(
    ("dynamics", "policy"),
    [
        *((dynamics, "efhc") for dynamics in DYNAMICS),
        ("static", "gt"),
        ("static", "zt"),
        ("markov", "gt"),
    ],
)
def test_theorem_1_on_the_quadratic(tiny, problem, dynamics, policy):
    """Models agree and approach the optimum: both gaps fall at least twentyfold in 3,000 iterations."""
    experiment, best = problem
    experiment = experiment.replace(dynamics=dynamics, policy=policy, r=20.0)
    model = make_model("quadratic", (3, 3), 4)
    first, last = ends_of(experiment, tiny)
    before, after = global_gap(model, experiment, tiny, [first, last], best)
    assert spread(last) < spread(first) / 20
    assert -1e-4 < after < before / 20


def test_without_communication_devices_do_not_agree(tiny, problem):
    experiment, _ = problem
    first, last = ends_of(experiment.replace(policy="local"), tiny)
    assert spread(last) > spread(first) / 20
