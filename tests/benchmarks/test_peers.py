"""The implementations that we are timed against: the same trajectories as each other's and ours."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import oracle
from benchmarks.cnn import cnn
from benchmarks.peers import numpy_stacked
from benchmarks.peers.problem import SIZES, augmented, normalise, random_problem
from efhc_jax.models import make_model

TORCH = ["torch_modules", "torch_stacked"]
PEERS = [*(pytest.param(name, marks=pytest.mark.torch) for name in TORCH), "numpy_stacked"]
STACKED = PEERS[1:]
BY_HAND = list(numpy_stacked.GRADIENTS)  # models with gradients in NumPy
POLICIES = ["efhc", "gt", "zt"]  # of the runs of a random problem, in turn
R = {"svm": 1300.0, "lenet5": 50.0, "cnn": 50.0}  # some devices fire at some iterations


def module(peer):
    """Import a peer only when a test uses it: PyTorch may not be installed."""
    return importlib.import_module(f"benchmarks.peers.{peer}")


def small_problem(model, runs):
    problem = random_problem(model, runs, devices=4, batch=2, images=30, r=R[model], seed=3)
    return problem._replace(learning_rate=(0.7, 2.0, 0.6))


@pytest.mark.parametrize("model", BY_HAND)
def test_the_problem_exercises_the_trigger(model):
    problem = small_problem(model, runs=3)
    trajectory = numpy_stacked.run(problem, "float64")
    efhc, gt, zt = trajectory.fired
    assert all(0.2 < fired.mean() < 0.8 for fired in (efhc, gt))
    assert zt.all()
    assert np.abs(trajectory.weights - problem.weights).max() > 0.01


@pytest.mark.parametrize("runs", [1, 2, 3])
@pytest.mark.parametrize("peer", PEERS)
def test_svm_follows_the_oracle(peer, runs):
    problem = small_problem("svm", runs)
    trajectory = module(peer).run(problem, "float64")
    iterations = problem.samples.shape[1]
    for run in range(runs):
        history = oracle.simulate(
            weights=problem.weights[run],
            adjacency=np.repeat(problem.adjacency[run][None], iterations, axis=0),
            bandwidth=problem.bandwidth[run],
            samples=problem.samples[run],
            images=problem.images,
            labels=problem.labels,
            model="svm",
            policy=POLICIES[run],
            r=R["svm"],
            norm_order=2.0,
            learning_rate=problem.learning_rate,
        )
        np.testing.assert_array_equal(trajectory.fired[run], [step.fired for step in history])
        np.testing.assert_allclose(
            trajectory.transmission_time[run], [step.transmission_time for step in history]
        )
        np.testing.assert_allclose(trajectory.weights[run], history[-1].weights, atol=1e-12)


@pytest.mark.torch
@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize("peer", ["torch_stacked", "numpy_stacked"])
def test_lenet5_follows_the_modules(peer, runs):
    problem = small_problem("lenet5", runs)
    trajectory = module(peer).run(problem, "float64")
    expected = module("torch_modules").run(problem, "float64")
    np.testing.assert_array_equal(trajectory.fired, expected.fired)
    np.testing.assert_allclose(trajectory.transmission_time, expected.transmission_time)
    np.testing.assert_allclose(trajectory.weights, expected.weights, atol=1e-12)


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("model", BY_HAND)
def test_single_precision_stays_close(peer, model):
    problem = small_problem(model, runs=3)
    problem = problem._replace(threshold=np.zeros_like(problem.threshold))  # no trigger to flip
    single, double = (module(peer).run(problem, dtype) for dtype in ("float32", "float64"))
    assert single.weights.dtype == np.float32
    np.testing.assert_allclose(single.weights, double.weights, atol=1e-4)


@pytest.mark.parametrize("model", BY_HAND)
@pytest.mark.parametrize("peer", STACKED)
def test_blocks_change_nothing(monkeypatch, peer, model):
    problem = small_problem(model, runs=3)
    results = []
    for size in (3, 2):
        monkeypatch.setitem(module(peer).RUNS_AT_ONCE, model, size)
        results.append(module(peer).run(problem, "float64"))
    for whole, in_blocks in zip(*results, strict=True):
        np.testing.assert_allclose(whole, in_blocks, atol=1e-12)


@pytest.mark.torch
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("model", BY_HAND)
def test_gradients_agree(x64, model, batch):
    import torch

    from benchmarks.peers import torch_modules, torch_stacked

    rng = np.random.default_rng(batch)
    weights = rng.uniform(-0.2, 0.2, (4, SIZES[model]))
    images = normalise(model, rng.integers(0, 256, (4 * batch, 28, 28), dtype=np.uint8), "float64")
    labels = rng.integers(0, 10, (4, batch))
    rows = augmented(images) if model == "svm" else images
    x = rows.reshape(4, batch, *rows.shape[1:])

    by_hand = np.full_like(weights, np.nan)
    numpy_stacked.GRADIENTS[model](weights, x, labels, by_hand)
    stacked = torch_stacked.gradients(
        model, torch.from_numpy(weights), torch.from_numpy(x), torch.from_numpy(labels)
    )
    stacked = torch.cat([part.flatten(1) for part in stacked], dim=1).numpy()
    one_by_one = []
    for i in range(4):
        device = torch_modules.Device(model, torch.from_numpy(weights[i]), 0.0)
        inputs = torch.from_numpy(images).unflatten(0, (4, batch)).unsqueeze(2)
        device.compute_gradient(inputs[i], torch.from_numpy(labels[i]))
        for parameter in device.module.parameters():
            parameter.data = parameter.grad
        one_by_one.append(torch_modules.to_row(model, device.module).numpy())

    ours = make_model(model, (28, 28), 10)
    pixels = images.reshape(4, batch, *images.shape[1:])
    pixels = pixels if model == "svm" else pixels[..., 2:-2, 2:-2]
    slope = jax.grad(lambda w, x, y: ours.loss(ours.logits(w, x), y).mean())
    expected = jax.jit(jax.vmap(slope))(weights, pixels, labels)

    assert np.abs(by_hand).max() > 0.01
    for gradient in (by_hand, stacked, one_by_one):
        np.testing.assert_allclose(gradient, expected, atol=1e-14)


@pytest.mark.torch
@pytest.mark.parametrize("model", BY_HAND)
def test_accuracies_agree(model):
    rng = np.random.default_rng(0)
    weights = rng.normal(0, 0.3, (3, SIZES[model]))
    images = rng.integers(0, 256, (130, 28, 28), dtype=np.uint8)  # not a whole number of chunks
    labels = rng.integers(0, 10, 130)
    accuracies = [
        module(peer).evaluate(model, weights, images, labels, "float64")
        for peer in (*TORCH, "numpy_stacked")
    ]
    assert len(set(accuracies[0])) > 1
    np.testing.assert_array_equal(accuracies[1], accuracies[0])
    np.testing.assert_array_equal(accuracies[2], accuracies[0])


@pytest.mark.torch
def test_the_cnn_of_pytorch_is_that_of_flax(x64):
    import torch

    from benchmarks.peers import torch_modules, torch_stacked

    problem = small_problem("cnn", runs=1)
    found = [each.run(problem, "float64").weights for each in (torch_modules, torch_stacked)]
    assert np.abs(found[0] - problem.weights).max() > 0.01
    np.testing.assert_allclose(found[1], found[0], atol=1e-12)

    model, row = cnn((28, 28), 10), problem.weights[0, 0]
    assert model.size == SIZES["cnn"]
    images = normalise("cnn", problem.images, "float64")
    scores = model.logits(jnp.asarray(row), jnp.asarray(images))
    flat = torch.from_numpy(row)
    module = torch_modules.load_row("cnn", torch_modules.make_module("cnn").double(), flat)
    assert torch.equal(torch_modules.to_row("cnn", module), flat)
    with torch.no_grad():
        np.testing.assert_allclose(module(torch.from_numpy(images)[:, None]), scores, atol=1e-12)
