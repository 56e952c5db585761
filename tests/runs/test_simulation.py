"""Whole runs: checked by hand through the trace, cut into chunks, compiled once, and for GPUs too."""

import functools
import itertools
import json
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import efhc_jax as efhc
import oracle
import small
from efhc_jax.data import Dataset
from efhc_jax.engine.evaluation import evaluate
from efhc_jax.engine.program import Samples, advance, initialise
from efhc_jax.engine.recording import record_summary
from efhc_jax.models.base import normalise
from efhc_jax.runs.prepare import make_spec, prepare, stack
from efhc_jax.runs.simulation import Control, chunks, evaluation_times

SMALL = small.SMALL.replace(iterations=30)


@pytest.mark.parametrize("policy", ["efhc", "rg", "central"])
def test_a_trace_can_be_checked_by_hand(x64, tiny, policy):
    experiment = SMALL.replace(policy=policy)
    run = efhc.simulate(experiment, tiny, trace=True)
    for k, expected in enumerate(small.oracle_of(experiment, tiny, run)):
        np.testing.assert_array_equal(run.fired[k], expected.fired)
        np.testing.assert_array_equal(run.used_links[k], expected.used_links)
        np.testing.assert_allclose(run.weights[k + 1], expected.weights, atol=1e-11)
        np.testing.assert_allclose(run.last_broadcast[k + 1], expected.last_broadcast, atol=1e-11)
        np.testing.assert_allclose(run.transmission_time[k], expected.transmission_time)
        np.testing.assert_allclose(run.train_loss[k], expected.train_loss)
        assert int(run.links_used[k]) == expected.used_links.sum() // 2


def test_evaluations_are_what_the_trace_gives_by_hand(tiny):
    run = efhc.simulate(SMALL, tiny, trace=True)
    assert run.iteration.values.tolist() == [0, 10, 20, 30]
    pixels = oracle.normalise(tiny.test_images.reshape(len(tiny.test_images), -1))
    svm = oracle.MODELS["svm"](4)
    for position, k in enumerate(run.iteration.values):
        weights = run.weights.values[k].astype(float)
        for device in range(5):
            scores = np.array([svm.scores(weights[device], x) for x in pixels])
            right = (scores.argmax(1) == tiny.test_labels).mean()
            assert float(run.accuracy[position, device]) == pytest.approx(right)
            loss = svm.loss(weights[device], pixels, tiny.test_labels)
            assert float(run.test_loss[position, device]) == pytest.approx(loss, rel=1e-4)
        spread = np.linalg.norm(weights - weights.mean(0)) / np.sqrt(5)
        assert float(run.consensus_error[position]) == pytest.approx(spread, rel=1e-4)
        scores = np.array([svm.scores(weights.mean(0), x) for x in pixels])
        right = (scores.argmax(1) == tiny.test_labels).mean()
        assert float(run.mean_model_accuracy[position]) == pytest.approx(right)
        np.testing.assert_array_equal(run.broadcasts[position], run.fired[:k].sum("step"))


def test_the_same_experiment_gives_the_same_bits(tiny):
    first, second = (efhc.simulate(SMALL, tiny) for _ in range(2))
    assert first.equals(second)
    assert not first.equals(efhc.simulate(SMALL.replace(seed=1), tiny))


def test_evaluating_more_often_changes_nothing_else(x64, tiny):
    often = efhc.simulate(SMALL.replace(eval_every=7), tiny)
    seldom = efhc.simulate(SMALL, tiny)
    assert often.iteration.values.tolist() == [0, 7, 14, 21, 28, 30]
    np.testing.assert_allclose(often.train_loss, seldom.train_loss, rtol=1e-12)
    np.testing.assert_array_equal(often.links_used, seldom.links_used)
    np.testing.assert_allclose(often.test_loss[-1], seldom.test_loss[-1], rtol=1e-12)


def test_policies_of_one_seed_share_all_but_their_decisions(tiny):
    runs = {
        policy: efhc.simulate(SMALL.replace(policy=policy), tiny, trace=True)
        for policy in ("efhc", "zt", "local")
    }
    for name in ("adjacency", "sample", "bandwidth"):
        assert runs["efhc"][name].equals(runs["zt"][name])
        assert runs["efhc"][name].equals(runs["local"][name])
    assert (runs["efhc"].weights[0] == runs["local"].weights[0]).all()
    assert not runs["local"].fired.any()
    assert runs["zt"].fired.all()


def test_one_compilation_serves_every_value(tiny):
    efhc.simulate(SMALL, tiny)
    before = advance._cache_size(), evaluate._cache_size(), initialise._cache_size()
    for name, policy in efhc.POLICIES.items():
        if policy.init is None:  # a program has the memories of the policies that it uses
            efhc.simulate(SMALL.replace(policy=name), tiny)
    changes = [
        {"r": 7.0},
        {"seed": 5},
        {"weak_fraction": 0.2},
        {"connectivity": 0.9},
        {
            "learning_rate": 0.1,
            "learning_rate_schedule.exponent": 0.9,
            "learning_rate_schedule.offset": 3.0,
        },
        {"mean_bandwidth": 900.0, "weak_bandwidth": 100.0},
        {"split": "iid"},
        {"labels_per_device": 3},
        {"graph": "ring"},
        {"iterations": 90},  # more chunks of the same length
    ]
    for change in changes:
        efhc.simulate(SMALL.replace(**change), tiny)
    assert (advance._cache_size(), evaluate._cache_size(), initialise._cache_size()) == before
    efhc.simulate(SMALL.replace(devices=13, split="iid"), tiny)  # no other test has thirteen
    assert advance._cache_size() == before[0] + 1, "another shape is one more compilation"


@pytest.mark.parametrize("model", ["svm", "lenet5"])
def test_the_whole_run_lowers_for_gpus_without_callbacks(model):
    images = np.zeros((20, 28, 28), np.uint8)
    labels = np.tile(np.arange(10), 2).astype(np.int32)
    data = Dataset("blank", images, labels, images, labels)
    experiment = efhc.Experiment(model=model, dataset="synthetic")
    spec = make_spec(experiment, data)
    values = stack([prepare(experiment, data)] * 2, spec.dynamics)
    samples = Samples(jnp.asarray(images), jnp.asarray(labels))

    def whole_run(key_data, values):
        values = values._replace(key=jax.random.wrap_key_data(key_data))
        progress = initialise(spec, values)
        progress, _, recorded = advance(spec, record_summary, 3, values, progress, None, 0, samples)
        return recorded, evaluate(spec, progress.state, samples)

    key_data = jax.random.key_data(values.key)
    kernels = jax.export.DisabledSafetyCheck.custom_call("__gpu$xla.gpu.triton")  # nothing is stored
    export = jax.export.export(jax.jit(whole_run), platforms=["cuda"], disabled_checks=[kernels])
    exported = export(key_data, values._replace(key=None))
    text = re.sub(r"#loc\d* = .*|loc\(.*\)", "", exported.mlir_module())  # names of Python code
    assert exported.platforms == ("cuda",)
    assert "stablehlo.while" in text
    assert "callback" not in text
    assert "f64" not in text, "nothing is computed in 64 bits unless asked"


def test_a_model_that_stops_being_finite_is_named_and_the_rest_is_kept(tiny):
    wild = SMALL.replace(
        model="quadratic", learning_rate=1e6, learning_rate_schedule="constant", iterations=60
    )
    with pytest.raises(efhc.DivergedError) as caught:
        efhc.simulate(wild, tiny)
    message, kept = str(caught.value), caught.value.result
    assert "are not finite from iteration" in message
    assert "devices" in message
    assert "learning_rate=1e+06" in message
    iteration = int(message.split("iteration ")[1].split(";")[0])
    assert kept.sizes["step"] == iteration - 1
    assert (kept.iteration < iteration).all()
    trace = traced_until(wild, tiny, iteration)
    assert np.isfinite(trace.weights[: iteration - 1]).all()


def traced_until(experiment, data, iteration):
    with pytest.raises(efhc.DivergedError) as caught:
        efhc.simulate(experiment, data, trace=True)
    return caught.value.result


def test_a_trace_that_would_not_fit_is_refused(tiny):
    with pytest.raises(efhc.ExperimentError, match=r"iterations=50000000: .* GiB; try .* fewer"):
        efhc.simulate(SMALL.replace(iterations=50_000_000), tiny, trace=True)


def test_training_learns_and_communication_helps():
    experiment = efhc.Experiment(dataset="synthetic", iterations=600, eval_every=600)
    final = {
        policy: float(efhc.simulate(experiment.replace(policy=policy)).accuracy[-1].mean())
        for policy in ("central", "zt", "efhc", "local")
    }
    assert final["local"] < 0.2, "one label a device and no communication cannot learn ten"
    assert final["efhc"] > 0.6
    assert final["zt"] > 0.6
    assert final["central"] > 0.6


def test_results_say_where_they_come_from(tiny):
    run = efhc.simulate(SMALL, tiny)
    assert efhc.Experiment.from_json(run.attrs["experiment"]) == small.named_after(SMALL, "tiny")
    assert json.loads(run.attrs["versions"])["jax"] == jax.__version__
    assert run.attrs["platform"].startswith("cpu")
    assert run.attrs["seconds"] > 0


@pytest.mark.parametrize("total", [1, 499, 500, 501, 3001])
def test_chunks_cover_everything_once(total):
    pieces = list(chunks(100, 100 + total))
    assert pieces[0][0] == 100
    assert all(a + n == b for (a, n), (b, _) in itertools.pairwise(pieces))
    assert sum(length for _, length in pieces) == total
    assert max(length for _, length in pieces) <= 500
    assert len({length for _, length in pieces}) <= 2


def test_evaluation_times_end_with_the_last_iteration():
    assert evaluation_times(SMALL.replace(iterations=5, eval_every=10)).tolist() == [0, 5]
    assert evaluation_times(SMALL.replace(iterations=20, eval_every=10)).tolist() == [0, 10, 20]


@pytest.mark.parametrize("at_once", [1, 7, 19, 20, 1000])
def test_images_are_counted_once_however_many_are_evaluated_at_once(x64, tiny, at_once):
    spec = make_spec(SMALL, tiny)
    states = initialise(spec, stack([prepare(SMALL, tiny)], spec.dynamics)).state
    test = Samples(jnp.asarray(tiny.test_images[:20]), jnp.asarray(tiny.test_labels[:20]))
    model = spec.rules.model
    in_parts = spec._replace(rules=spec.rules._replace(model=model._replace(images_at_once=at_once)))
    found = evaluate(in_parts, states, test)
    scores = jax.vmap(lambda row: model.logits(row, normalise(test.images)))(states.weights[0])
    right = (np.argmax(np.asarray(scores), axis=-1) == np.asarray(test.labels)).mean(axis=-1)
    loss = np.mean([model.loss(score, test.labels) for score in scores], axis=-1)
    np.testing.assert_allclose(found["accuracy"][0], right, rtol=1e-12)
    np.testing.assert_allclose(found["test_loss"][0], loss, rtol=1e-12)


def test_early_evaluations_are_at_halvings():
    early = SMALL.replace(iterations=20, eval_every=10, early_evaluations=2)
    assert evaluation_times(early).tolist() == [0, 2, 5, 10, 20]
    assert evaluation_times(early.replace(early_evaluations=30)).tolist() == [0, 1, 2, 5, 10, 20]
    assert evaluation_times(early.replace(iterations=4)).tolist() == [0, 2, 4]


def test_early_evaluations_change_nothing_else(tiny):
    plain = efhc.simulate(SMALL, tiny)
    early = efhc.simulate(SMALL.replace(early_evaluations=2), tiny)
    assert early.iteration.values.tolist() == [0, 2, 5, 10, 20, 30]
    assert early.isel(evaluation=[0, 3, 4, 5]).equals(plain)


def test_chunking_changes_no_bit_of_the_dynamics(tiny):
    spec = make_spec(SMALL, tiny)
    values = stack([prepare(SMALL, tiny)], spec.dynamics)
    train = Samples(jnp.asarray(tiny.train_images), jnp.asarray(tiny.train_labels))
    go = functools.partial(advance, spec, record_summary)
    whole, *_ = go(10, values, initialise(spec, values), None, 0, train)
    parts = initialise(spec, values)
    for first in (0, 5):
        parts, *_ = go(5, values, parts, None, first, train)
    np.testing.assert_array_equal(whole.state.weights, parts.state.weights)


def test_a_control_is_told_of_the_progress(tiny):
    done = []
    efhc.simulate(SMALL, tiny, control=Control(report=done.append))
    assert done == [10, 20, 30]
