"""Gradients of all devices at once, and of one after the other."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from efhc_jax.engine import gradients
from efhc_jax.engine.gradients import loss_and_gradient, takes_turns
from efhc_jax.models import make_model


def problem(name, devices=3, batch=2):
    rng = np.random.default_rng(0)
    model = make_model(name, (28, 28), 10)
    weights = jax.vmap(model.init)(jax.random.split(jax.random.key(0), devices))
    images = jnp.asarray(rng.integers(0, 256, (devices, batch, 28, 28), dtype=np.uint8))
    return model, weights, images, jnp.asarray(rng.integers(0, 10, (devices, batch)))


@pytest.mark.parametrize("name", ["svm", "lenet5"])
def test_both_agree_alone_in_a_loop_and_mapped_over_runs(x64, name, monkeypatch):
    model, *arguments = problem(name)

    def computed(limit):
        monkeypatch.setattr(gradients, "_NUMBERS_OF_ALL", limit)
        one = functools.partial(loss_and_gradient, model)
        runs = [jnp.stack([each, each[::-1]]) for each in arguments]
        mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("runs",))
        spec = jax.sharding.PartitionSpec("runs")
        return (
            jax.jit(one)(*arguments),
            jax.jit(jax.vmap(one))(*runs),
            jax.jit(lambda *runs: jax.lax.scan(lambda c, x: (c, one(*x)), 0, runs)[1])(*runs),
            jax.jit(
                jax.shard_map(jax.vmap(one), mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
            )(*runs),
        )

    at_once, in_turn = computed(10**12), computed(0)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12), at_once, in_turn)


@pytest.mark.parametrize(
    ("name", "devices", "batch", "expected"),
    [("lenet5", 3, 1, False), ("svm", 3, 64, False), ("lenet5", 3, 64, True), ("svm", 60, 64, True)],
)
def test_devices_take_turns_on_a_cpu_where_their_arrays_are_large(name, devices, batch, expected):
    model, *arguments = problem(name, devices, batch)
    assert takes_turns(model, *arguments[:2]) is expected
    traced = jax.jit(functools.partial(loss_and_gradient, model)).trace(*arguments)
    for platform, loops in [("cpu", expected), ("cuda", False)]:
        text = traced.lower(lowering_platforms=(platform,)).as_text()
        assert ("stablehlo.while" in text) is loops


@pytest.mark.parametrize("batch", [1, 2, 5])
@pytest.mark.parametrize("name", ["svm", "logistic", "lenet5"])
def test_forms_for_a_cpu_have_the_same_scores_and_gradients(x64, name, batch):
    model, weights, images, labels = problem(name, batch=batch)

    def every(logits):
        def loss(row, images, labels):
            scores = logits(row, images / 255)
            return model.loss(scores, labels).mean(), scores

        return jax.jit(jax.vmap(jax.value_and_grad(loss, has_aux=True)))(weights, images, labels)

    assert model.logits_on_cpu is not None
    expected, found = every(model.logits), every(model.logits_on_cpu)
    assert all(np.abs(each).max() > 1e-3 for each in jax.tree.leaves(expected))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12), found, expected)
