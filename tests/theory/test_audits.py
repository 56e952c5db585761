"""The audit of whole runs."""

import numpy as np
import optax
import pytest
from flax import nnx

import efhc_jax as efhc
import small
from efhc_jax.errors import DataError
from efhc_jax.models.base import PIXEL_MEAN, PIXEL_STD
from efhc_jax.models.logistic import logistic
from efhc_jax.models.properties import NOTHING_KNOWN, GradientBounds, Properties
from efhc_jax.models.quadratic import optimum
from efhc_jax.runs.prepare import split_of

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
    inside, _ = findings_of(BASE.replace(**{"learning_rate_schedule.exponent": 0.75}), tiny)
    assert inside["squared step sizes sum"].verdict == "holds"


def test_a_periodic_network_has_the_window_it_was_given(tiny):
    path = BASE.replace(
        graph="star", dynamics=efhc.dynamics.Periodic(period=5)
    )  # five links, one at a time
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


def test_the_gap_to_a_known_optimum_is_measured(tiny):
    """The nearest-centroid problem, whose optimum is the class means, by hand from the last models."""
    experiment = BASE.replace(
        model="quadratic", split="iid", **{"learning_rate_schedule.exponent": 0.75}
    )
    run = efhc.simulate(experiment, tiny, trace=True)
    pool, start, count = split_of(experiment, tiny)
    owned = [pool[first : first + number] for first, number in zip(start, count, strict=True)]
    images = (tiny.train_images.reshape(40, -1) / 255 - PIXEL_MEAN) / PIXEL_STD

    def loss(row):
        """The mean over devices of the mean over their samples, as the paper has it."""
        of_samples = 0.5 * ((images - row.reshape(4, 9)[tiny.train_labels]) ** 2).sum(1)
        return np.mean([of_samples[samples].mean() for samples in owned])

    best = loss(optimum(images, tiny.train_labels, owned))
    means = run.weights.values.mean(1)[run.iteration.values]
    np.testing.assert_allclose(run.global_loss, [loss(row) for row in means], rtol=1e-5)
    found = efhc.audit(run, tiny)[-1]
    assert found.name == "optimality gap F(w̄) − F* (Theorem 1b)"
    np.testing.assert_allclose(found.curve.values, [loss(row) - best for row in means], rtol=1e-3)
    assert found.value == found.curve.fit.exponent > 0.3
    assert "falling like k^-" in found.figure


def test_what_cannot_be_compared_with_an_optimum_says_so(tiny, monkeypatch):
    run = efhc.simulate(BASE, tiny, audit=True)
    assert efhc.audit(run, tiny)[-1].value is not None
    older = efhc.audit(run.drop_vars("global_loss"), tiny)[-1]
    assert older.figure == "the run did not record F(w̄); run it again"

    def nothing(name):
        raise DataError("no such data")

    monkeypatch.setattr("efhc_jax.theory.audits.load_dataset", nothing)
    found = {finding.name.split(" (")[0]: finding for finding in efhc.audit(run)}
    assert "not on this machine" in found["optimality gap F(w̄) − F*"].figure
    assert "no bound is known" in found["bounded gradients"].figure


class Softmax(nnx.Module):
    """Logistic regression as Flax has it, with its parameters in another order."""

    def __init__(self, rngs):
        self.dense = nnx.Linear(4, 4, rngs=rngs)

    def __call__(self, images):
        return self.dense(images.reshape(len(images), -1))


def softmax(properties):
    loss = optax.softmax_cross_entropy_with_integer_labels
    return lambda image_shape, classes: efhc.from_nnx(Softmax, loss, properties)


def theorem_of(found):
    names = ("convexity", "bounded gradients", "optimality gap F(w̄) − F*")
    return [found[name] for name in names]


def test_a_model_of_ones_own_is_audited_with_what_it_states(monkeypatch):
    """Logistic regression in Flax has the L, L∞ and F* of the package's own."""
    data = small.overlapping(60)
    stated = Properties(convex=True, score_gradient=GradientBounds(2**0.5, 1.0), lowest_loss=0.0)
    monkeypatch.setitem(efhc.MODELS, "softmax", softmax(stated))
    experiment = BASE.replace(model="softmax", split="iid")
    found, _ = findings_of(experiment, data)
    convex, gradients, gap = theorem_of(found)
    assert convex.figure == "softmax is convex; it may have no minimiser"
    assert (convex.verdict, gradients.verdict) == ("holds", "holds")
    expected, _ = findings_of(experiment.replace(model="logistic"), data)
    _, bounds, best = theorem_of(expected)
    assert ends_of(gradients, "L∞ = ") == ends_of(bounds, "L∞ = ")
    assert ends_of(gap, "F* = ")[:6] == ends_of(best, "F* = ")[:6]


def ends_of(finding, after):
    return finding.figure.split(after)[1]


def test_a_model_that_states_nothing_cannot_be_judged(monkeypatch):
    monkeypatch.setitem(efhc.MODELS, "softmax", softmax(NOTHING_KNOWN))
    found, _ = findings_of(BASE.replace(model="softmax", split="iid"), small.overlapping(60))
    convex, gradients, gap = theorem_of(found)
    assert {one.verdict for one in (convex, gradients, gap)} == {"cannot be known from a finite run"}
    assert convex.figure == "nothing is known about the model softmax"
    assert "no bound is known" in gradients.figure
    assert gap.figure == "softmax is not known to be convex, so there is no F* to compare with"


def test_what_a_model_states_is_asked_also_without_data(tiny, monkeypatch):
    """Unless it is not registered any more, or takes no other images than those of the run."""

    def picky(image_shape, classes):
        if image_shape != (3, 3):
            raise ValueError("takes 3×3 images")
        return logistic(image_shape, classes)

    def convexity(run):
        return efhc.audit(run)[2].figure

    monkeypatch.setitem(efhc.MODELS, "mine", logistic)
    run = efhc.simulate(BASE.replace(model="mine"), tiny, audit=True)
    assert convexity(run) == "mine is convex; it has a minimiser only if its classes overlap"
    monkeypatch.setitem(efhc.MODELS, "mine", picky)
    assert convexity(run) == "nothing is known about the model mine"
    monkeypatch.delitem(efhc.MODELS, "mine")
    assert convexity(run) == "nothing is known about the model mine"


def test_graphs_that_would_not_fit_are_refused(tiny):
    many = BASE.replace(devices=40_000, split="iid", batch_size=1, iterations=1000)
    with pytest.raises(efhc.ExperimentError, match="the graphs of 40,000 devices would take 2980.2 GiB"):
        efhc.simulate(many, tiny, audit=True)


def test_ordinary_runs_do_not_look_at_the_training_loss(tiny):
    assert "global_loss" not in efhc.simulate(BASE, tiny)


def test_a_coordinator_needs_no_links_for_information_to_flow(tiny):
    found, _ = findings_of(BASE.replace(policy="central"), tiny)
    assert not any("information flow" in name or "weights" in name for name in found)


def test_a_run_that_diverged_at_once_has_nothing_to_audit(tiny):
    with pytest.raises(efhc.DivergedError) as caught:
        efhc.simulate(BASE.replace(learning_rate=1e30), tiny, audit=True)
    with pytest.raises(efhc.ExperimentError, match="diverged in its first iteration"):
        efhc.audit(caught.value.result, tiny)


def test_the_theorem_says_nothing_about_other_methods(tiny):
    experiment = BASE.replace(method="tracking", **{"learning_rate_schedule.exponent": 0.75})
    run = efhc.simulate(experiment, tiny, audit=True)
    first, *others = efhc.audit(run, tiny)
    assert (first.name, first.verdict) == ("the update of the models (Theorem 1)", "does not hold")
    assert "method='tracking'" in first.figure
    assert [one.name for one in others] == [
        "convexity",
        "connectivity of the physical graph",
        "bounded waits between broadcasts",
        "consensus error",
        "optimality gap F(w̄) − F*",
    ]
    assert others[-1].value is not None


def test_the_audit_checks_what_the_theory_of_a_method_asks_for(tiny):
    ring = BASE.replace(method="d2", graph="ring", policy="zt")
    found, _ = findings_of(ring, tiny)
    assert found["the same P in all iterations"].verdict == "holds"
    eigenvalues = found["eigenvalues of P above -0.333"]
    assert (eigenvalues.verdict, eigenvalues.value) == ("does not hold", pytest.approx(-1 / 3, abs=1e-6))
    assert found["constant step size"].verdict == "does not hold"
    better = ring.replace(graph="complete", learning_rate_schedule="constant", policy="rg")
    found, _ = findings_of(better, tiny)
    assert found["the same P in all iterations"].verdict == "does not hold"
    assert found["eigenvalues of P above -0.333"].verdict == "holds"
    assert found["constant step size"].verdict == "holds"


def test_copies_are_averaged_over_the_same_links_whoever_sends(tiny):
    found, run = findings_of(BASE.replace(method="sparq", policy="rg"), tiny)
    assert (run.used_links != run.used_links[0]).any()
    assert found["the same P in all iterations"].verdict == "holds"


def test_other_local_training_is_outside_the_theorem(tiny):
    found, _ = findings_of(BASE.replace(optimizer="momentum"), tiny)
    assert "optimizer='momentum'" in found["the update of the models"].figure
    assert "transition weights" in found
