"""EF-HC in NumPy with the models of all devices and runs stacked, and gradients derived by hand.

A leading axis D runs over all models. Arrays inside LeNet5 are (D, channel, B, height, width).
The sizes of blocks of runs were tuned on two cores with 32 MB of cache.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from benchmarks.peers.problem import (
    CLASSES,
    SHAPES,
    Problem,
    Trajectory,
    augmented,
    blocks,
    metropolis_weights,
    normalise,
    rates,
    transmission_time,
)

RUNS_AT_ONCE = {"svm": 8, "lenet5": 1}


def layers(model: str, weights: np.ndarray) -> list[np.ndarray]:
    """Views of stacked rows (D, n) as weights (D, outputs, inputs) and biases (D, outputs, 1)."""
    shapes = SHAPES[model]
    ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
    pieces = np.split(weights, ends, axis=-1)
    return [
        piece.reshape(len(weights), shape[0], -1) for piece, shape in zip(pieces, shapes, strict=True)
    ]


def _write_outer(slope: np.ndarray, inputs: np.ndarray, out: np.ndarray) -> None:
    """The gradient of weights, from slopes (D, outputs, S) and inputs (D, inputs, S)."""
    # NumPy's matrix product is slow for single columns.
    product = np.multiply if slope.shape[-1] == 1 else np.matmul
    product(slope, inputs.mT, out=out)


# SVM ---------------------------------------------------------------------------------------------


def svm_gradient(weights: np.ndarray, x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
    """Write the gradient of the mean hinge on x (D, B, 785) and y (D, B) for models (D, n)."""
    scores = weights.reshape(-1, CLASSES, x.shape[-1]) @ x.mT
    label = y[:, None]
    slope = (scores + 1 > np.take_along_axis(scores, label, 1)).astype(scores.dtype)
    np.put_along_axis(slope, label, 0, 1)
    np.put_along_axis(slope, label, -slope.sum(1, keepdims=True), 1)
    slope /= CLASSES * y.shape[1]
    _write_outer(slope, x.mT, out.reshape(-1, CLASSES, x.shape[-1]))


# LeNet5 ------------------------------------------------------------------------------------------


def lenet5_gradient(weights: np.ndarray, x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
    """Write the gradient of the mean cross-entropy on x (D, B, 32, 32), y (D, B), models (D, n)."""
    parameters, gradient = layers("lenet5", weights), layers("lenet5", out)
    w2, w3, w4, w5 = parameters[2::2]
    p1 = _patches(x[:, None])
    a1 = _tanh_layer(p1, *parameters[:2]).reshape(len(x), 6, -1, 28, 28)
    p2, a2, h2, a3, a4, scores = _after_first_layer(a1, parameters)

    scores -= scores.max(1, keepdims=True)
    d5 = np.exp(scores, out=scores)
    d5 /= d5.sum(1, keepdims=True)
    d5 -= np.arange(CLASSES)[:, None] == y[:, None]
    d5 /= y.shape[1]
    d4 = w5.mT @ d5 * (1 - a4 * a4)
    d3 = w4.mT @ d4 * (1 - a3 * a3)
    d2 = _before_pool(_as_images(w3.mT @ d3), a2)
    d1 = _before_pool(_unpatched(w2.mT @ d2, a1), a1)
    inputs_and_slopes = [(p1, d1), (p2, d2), (h2, d3), (a3, d4), (a4, d5)]
    for i, (inputs, slope) in enumerate(inputs_and_slopes):
        _write_outer(slope, inputs, gradient[2 * i])
        np.sum(slope, axis=-1, keepdims=True, out=gradient[2 * i + 1])


def _tanh_layer(inputs: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    x = weights @ inputs
    x += bias
    return np.tanh(x, out=x)


def _after_first_layer(a1: np.ndarray, parameters: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Values after the first activations: second patches, activations, pooled, dense ones, scores."""
    _, _, w2, b2, w3, b3, w4, b4, w5, b5 = parameters
    p2 = _patches(_pool(a1))
    a2 = _tanh_layer(p2, w2, b2).reshape(len(w2), 16, -1, 10, 10)
    h2 = np.moveaxis(_pool(a2), 2, -1).reshape(len(w2), 400, -1)
    a3 = _tanh_layer(h2, w3, b3)
    a4 = _tanh_layer(a3, w4, b4)
    return p2, a2, h2, a3, a4, w5 @ a4 + b5


def _patches(x: np.ndarray) -> np.ndarray:
    """All 5×5 patches of (D, channel, B, height, width): (D, channel·25, B·pixels)."""
    windows = sliding_window_view(x, (5, 5), axis=(-2, -1))
    return windows.transpose(0, 1, 5, 6, 2, 3, 4).reshape(len(x), x.shape[1] * 25, -1)


def _unpatched(slopes: np.ndarray, a1: np.ndarray) -> np.ndarray:
    """The gradient of the pooled first layer from that of its patches: each pixel's sum."""
    batch = a1.shape[2]
    slopes = slopes.reshape(len(slopes), 6, 5, 5, batch, 10, 10)
    rows = np.zeros((len(slopes), 6, 5, batch, 10, 14), slopes.dtype)
    for right in range(5):
        rows[..., right : right + 10] += slopes[:, :, :, right]
    total = np.zeros((len(slopes), 6, batch, 14, 14), slopes.dtype)
    for down in range(5):
        total[..., down : down + 10, :] += rows[:, :, down]
    return total


def _pool(x: np.ndarray) -> np.ndarray:
    """The mean of every 2×2 square."""
    rows = x[..., 0::2, :] + x[..., 1::2, :]
    return (rows[..., 0::2] + rows[..., 1::2]) * x.dtype.type(0.25)


def _before_pool(slopes: np.ndarray, activation: np.ndarray) -> np.ndarray:
    """The gradient before pooling and tanh, as (D, channel, B·pixels)."""
    wide = np.repeat(slopes * slopes.dtype.type(0.25), 2, axis=-1)
    pairs_of_rows = activation.reshape(*slopes.shape[:-1], 2, -1)
    product = 1 - pairs_of_rows * pairs_of_rows
    product *= wide[..., None, :]
    return product.reshape(*activation.shape[:2], -1)


def _as_images(columns: np.ndarray) -> np.ndarray:
    """Columns (D, 400, B) as images (D, 16, B, 5, 5)."""
    return np.moveaxis(columns.reshape(len(columns), 16, 5, 5, -1), -1, 2)


GRADIENTS = {"svm": svm_gradient, "lenet5": lenet5_gradient}


# The algorithm -----------------------------------------------------------------------------------


def load(problem: Problem, dtype: str = "float32") -> np.ndarray:
    """The images as inputs of the models."""
    pixels = normalise(problem.model, problem.images, dtype)
    return augmented(pixels) if problem.model == "svm" else pixels


def run(problem: Problem, dtype: str = "float32", loaded: np.ndarray | None = None) -> Trajectory:
    """All iterations of all runs, block by block."""
    images = load(problem, dtype) if loaded is None else loaded
    finished = [_run_block(block, images) for block in blocks(problem, RUNS_AT_ONCE[problem.model])]
    weights, fired = (np.concatenate(part) for part in zip(*finished, strict=True))
    return Trajectory(weights, fired, transmission_time(problem, fired))


def _run_block(problem: Problem, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The final weights (R, m, n) and broadcasts (R, K, m)."""
    _, devices, size = problem.weights.shape
    write_gradient, labels = GRADIENTS[problem.model], problem.labels
    weights = problem.weights.astype(images.dtype)
    last_broadcast = weights.copy()
    spare, gradient = np.empty_like(weights), np.empty_like(weights)
    link_weight = metropolis_weights(problem.adjacency).astype(images.dtype)
    threshold = problem.threshold.astype(images.dtype) ** 2 * size
    diagonal = np.arange(devices)
    samples = np.ascontiguousarray(problem.samples.swapaxes(0, 1))
    samples = samples.reshape(len(samples), -1, samples.shape[-1])  # (K, D, B)
    history = []
    for chosen, rate in zip(samples, rates(problem), strict=True):
        # Event 2, with both sides of the inequality squared.
        np.subtract(weights, last_broadcast, out=spare)
        fired = np.vecdot(spare, spare) >= threshold * rate**2
        transition = link_weight * (fired[:, :, None] | fired[:, None, :])
        transition[:, diagonal, diagonal] = 1 - transition.sum(-1)
        # Events 3 and 4, with the gradient of the models before they are mixed.
        flat = weights.reshape(-1, size), gradient.reshape(-1, size)
        write_gradient(flat[0], images[chosen], labels[chosen], flat[1])
        mixed = np.matmul(transition, weights, out=spare)
        gradient *= rate
        mixed -= gradient
        last_broadcast[fired] = weights[fired]
        weights, spare = mixed, weights
        history.append(fired)
    return weights, np.stack(history, axis=1)


def evaluate(
    model: str, weights: np.ndarray, images: np.ndarray, labels: np.ndarray, dtype: str = "float32"
) -> np.ndarray:
    """The accuracy of each device's model (m, n) on all images: (m,)."""
    parameters = layers(model, weights.astype(dtype))
    scores = {"svm": _svm_scores, "lenet5": _lenet5_scores}[model]
    hits, chunk = np.zeros(len(weights), int), {"svm": 1000, "lenet5": 100}[model]
    for start in range(0, len(images), chunk):
        x = normalise(model, images[start : start + chunk], dtype)
        hits += (scores(parameters, x).argmax(1) == labels[start : start + chunk]).sum(-1)
    return hits / len(images)


def _svm_scores(parameters: list[np.ndarray], x: np.ndarray) -> np.ndarray:
    """Scores (m, class, N) of shared images (N, 28, 28)."""
    table = parameters[0].reshape(-1, parameters[0].shape[-1])
    scores = table[:, :-1] @ x.reshape(len(x), -1).T
    scores += table[:, -1:]
    return scores.reshape(-1, CLASSES, len(x))


def _lenet5_scores(parameters: list[np.ndarray], x: np.ndarray) -> np.ndarray:
    """Scores (m, class, N) of shared images (N, 32, 32): one product holds all first layers."""
    w1, b1 = (p.reshape(-1, p.shape[-1]) for p in parameters[:2])
    a1 = _tanh_layer(_patches(x[None, None])[0], w1, b1)
    return _after_first_layer(a1.reshape(-1, 6, len(x), 28, 28), parameters)[-1]
