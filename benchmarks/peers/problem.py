"""Arguments and results of all peers, and functions that they share.

Symbols are those of arXiv 2204.03726. The graph does not change, so no link is ever new (Event 1).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

CLASSES = 10
PIXEL_MEAN, PIXEL_STD = 0.1307, 0.3081

# The layout of a flat row: the weights of a layer as (outputs, inputs), then its biases.
# The SVM has its biases as the weights of an additional input instead, which is always 1.
SVM_SHAPES: list[tuple[int, ...]] = [(CLASSES, 785)]
LENET5_SHAPES: list[tuple[int, ...]] = [
    shape
    for outputs, inputs in [(6, 25), (16, 150), (120, 400), (84, 120), (CLASSES, 84)]
    for shape in [(outputs, inputs), (outputs,)]
]
# The CNN is a Flax module: for each layer the biases, then the weights as (…, inputs, outputs).
CNN_SHAPES: list[tuple[int, ...]] = [
    *((16,), (3, 3, 1, 16), (32,), (3, 3, 16, 32)),
    *((64,), (7 * 7 * 32, 64), (CLASSES,), (64, CLASSES)),
]
SHAPES: dict[str, list[tuple[int, ...]]] = {
    "svm": SVM_SHAPES,
    "lenet5": LENET5_SHAPES,
    "cnn": CNN_SHAPES,
}
SIZES = {name: sum(int(np.prod(s)) for s in shapes) for name, shapes in SHAPES.items()}


class Problem(NamedTuple):
    """R independent runs of K iterations with m devices; a single run has R = 1."""

    model: str  # one of SHAPES
    weights: np.ndarray  # (R, m, n), W(0)
    adjacency: np.ndarray  # (R, m, m) bool, symmetric with a zero diagonal
    bandwidth: np.ndarray  # (R, m), b_i
    threshold: np.ndarray  # (R, m), the multiple of γ(k): r/b_i for EF-HC, r/b̄ for GT, 0 for ZT
    samples: np.ndarray  # (R, K, m, B), each iteration's mini-batches as indices into images
    images: np.ndarray  # (N, 28, 28) uint8
    labels: np.ndarray  # (N,)
    learning_rate: tuple[float, float, float]  # α(k) = γ(k) = a / (b + k)^c


class Trajectory(NamedTuple):
    """The results of the runs."""

    weights: np.ndarray  # (R, m, n), W(K)
    fired: np.ndarray  # (R, K, m) bool, v_i(k)
    transmission_time: np.ndarray  # (R, K)


def rates(problem: Problem) -> list[float]:
    """α(k) = γ(k) of every iteration."""
    a, b, c = problem.learning_rate
    return [a / (b + k) ** c for k in range(problem.samples.shape[1])]


def metropolis_weights(adjacency: np.ndarray) -> np.ndarray:
    """β_ij = min(1/(1+d_i), 1/(1+d_j)) on the links of each graph (..., m, m), 0 elsewhere."""
    own = 1 / (1 + adjacency.sum(-1))
    return np.where(adjacency, np.minimum(own[..., :, None], own[..., None, :]), 0)


def transmission_time(problem: Problem, fired: np.ndarray) -> np.ndarray:
    """(1/m) Σ_i (Σ_j v_ij / d_i)·n/b_i of every iteration, from the broadcasts (R, K, m).

    A device uses all of its links if it fires itself, otherwise those to neighbours that do.
    """
    degree = problem.adjacency.sum(-1)[:, None]
    from_neighbours = fired.astype(float) @ problem.adjacency.astype(float)
    used = np.where(fired, degree, from_neighbours)
    size = problem.weights.shape[-1]
    seconds = used / np.maximum(degree, 1) * size / problem.bandwidth[:, None]
    return seconds.mean(-1)


def normalise(model: str, images: np.ndarray, dtype: str) -> np.ndarray:
    """Normalised images (x/255 − 0.1307)/0.3081, padded with background to 32×32 for LeNet5."""
    frame = 2 if model == "lenet5" else 0
    pixels = np.pad(images, ((0, 0), (frame, frame), (frame, frame))).astype(dtype)
    pixels *= 1 / (255 * PIXEL_STD)
    pixels -= PIXEL_MEAN / PIXEL_STD
    return pixels


def augmented(pixels: np.ndarray) -> np.ndarray:
    """Images (N, height, width) as rows (N, height·width + 1) that end in a 1, for the bias."""
    flat = pixels.reshape(len(pixels), -1)
    return np.concatenate([flat, np.ones_like(flat[:, :1])], axis=1)


def blocks(problem: Problem, size: int) -> Iterator[Problem]:
    """The runs, at most `size` at a time, so that their models stay in the processor's cache."""
    for start in range(0, len(problem.weights), size):
        part = slice(start, start + size)
        yield problem._replace(
            weights=problem.weights[part],
            adjacency=problem.adjacency[part],
            bandwidth=problem.bandwidth[part],
            threshold=problem.threshold[part],
            samples=problem.samples[part],
        )


def random_problem(
    model: str,
    runs: int = 1,
    iterations: int = 8,
    devices: int = 10,
    batch: int = 1,
    images: int = 200,
    r: float = 50.0,
    seed: int = 0,
) -> Problem:
    """A problem of the paper's shape on random images; the runs take EF-HC, GT and ZT in turn."""
    rng = np.random.default_rng(seed)
    links = np.triu(rng.random((runs, devices, devices)) < 0.4, 1)
    links[:, range(devices - 1), range(1, devices)] = True  # a path, so that it is connected
    bandwidth = np.where(rng.random((runs, devices)) < 0.4, 1000.0, 7000.0)
    mean = np.broadcast_to(bandwidth.mean(-1, keepdims=True), bandwidth.shape)
    policies = [r / bandwidth, r / mean, np.zeros_like(bandwidth)]
    bound = {"svm": 1 / 28, "lenet5": 0.1, "cnn": 0.1}[model]
    return Problem(
        model=model,
        weights=rng.uniform(-bound, bound, (runs, devices, SIZES[model])),
        adjacency=links | links.swapaxes(1, 2),
        bandwidth=bandwidth,
        threshold=np.stack([policies[run % 3][run] for run in range(runs)]),
        samples=rng.integers(0, images, (runs, iterations, devices, batch)),
        images=rng.integers(0, 256, (images, 28, 28), dtype=np.uint8),
        labels=rng.integers(0, CLASSES, images),
        learning_rate=(1.0, 1.0, 0.5),
    )
