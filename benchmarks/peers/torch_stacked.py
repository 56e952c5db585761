"""EF-HC in PyTorch with the models of all devices and runs stacked in one tensor.

Automatic differentiation runs once for all of them: the gradient of the sum of their losses contains
each model's own gradient. In a single run `torch.func.vmap(grad(...))` took about twice as long, and
grouped convolutions longer than these patches; in a batch of runs they were similar, and
`torch.compile` was not faster. The sizes of blocks were tuned on two cores with 32 MB of cache.
"""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

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
from benchmarks.peers.torch_device import DEVICE

RUNS_AT_ONCE = {"svm": 16, "lenet5": 4, "cnn": 1}


def layers(model: str, weights: torch.Tensor) -> list[torch.Tensor]:
    """Views of stacked rows (D, n) as weights (D, outputs, inputs) and biases (D, outputs)."""
    shapes = SHAPES[model]
    pieces = weights.split([math.prod(shape) for shape in shapes], dim=-1)
    return [p.view(len(p), *shape) for p, shape in zip(pieces, shapes, strict=True)]


def svm_loss(parameters: list[torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The sum over models of their mean hinge on x (D, B, 785) and y (D, B)."""
    scores = parameters[0].bmm(x.mT)
    score = scores.gather(1, y[:, None])
    # The label's own term is the constant 1, which has no gradient.
    return (1 - score + scores).clamp_min(0).sum() / (CLASSES * y.shape[1])


def lenet5_loss(parameters: list[torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The sum over models of their mean cross-entropy on x (D, B, 32, 32) and y (D, B)."""
    x = x.unsqueeze(1)
    for w, b in (parameters[0:2], parameters[2:4]):
        x = _pool(_convolve(x, w, b).tanh_())
    x = x.transpose(1, 2).flatten(2)
    scores = _dense_layers(x, parameters[4:])
    return F.cross_entropy(scores.flatten(0, 1), y.flatten(), reduction="sum") / y.shape[1]


def cnn_loss(parameters: list[torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The sum over models of their mean cross-entropy on x (D, B, 28, 28) and y (D, B).

    With 3×3 kernels, grouped convolutions are faster than patches, and than a loop over the models.
    """
    b1, w1, b2, w2, b3, w3, b4, w4 = parameters
    models, x = len(x), x.transpose(0, 1)  # (B, D, 28, 28)
    for w, b in ((w1, b1), (w2, b2)):
        kernels = w.permute(0, 4, 3, 1, 2).flatten(0, 1)
        x = F.conv2d(x, kernels, b.flatten(), padding=1, groups=models)
        x = F.max_pool2d(x.relu(), 2)
    x = x.unflatten(1, (models, -1)).permute(1, 0, 3, 4, 2).flatten(2)  # (D, B, 7·7·32)
    x = torch.baddbmm(b3.unsqueeze(1), x, w3).relu()
    scores = torch.baddbmm(b4.unsqueeze(1), x, w4)
    return F.cross_entropy(scores.flatten(0, 1), y.flatten(), reduction="sum") / y.shape[1]


def _convolve(x: torch.Tensor, kernels: torch.Tensor, bias: torch.Tensor, side: int = 5) -> torch.Tensor:
    """Convolutions of x (D, channel, B, height, width), each model with its own square kernels."""
    patches = x.unfold(-2, side, 1).unfold(-2, side, 1)  # (D, channel, B, height, width, side, side)
    shape = patches.shape[2:5]
    patches = patches.permute(0, 1, 5, 6, 2, 3, 4).reshape(len(x), kernels.shape[-1], -1)
    return torch.baddbmm(bias.unsqueeze(-1), kernels, patches).unflatten(-1, shape)


def _pool(x: torch.Tensor) -> torch.Tensor:
    return F.avg_pool2d(x.flatten(0, 2), 2).unflatten(0, x.shape[:3])


def _dense_layers(x: torch.Tensor, parameters: list[torch.Tensor]) -> torch.Tensor:
    """The last three layers, from (D, B, 400) to scores (D, B, class)."""
    *hidden, last = zip(parameters[::2], parameters[1::2], strict=True)
    for w, b in hidden:
        x = torch.baddbmm(b.unsqueeze(1), x, w.mT).tanh()
    return torch.baddbmm(last[1].unsqueeze(1), x, last[0].mT)


LOSSES = {"svm": svm_loss, "lenet5": lenet5_loss, "cnn": cnn_loss}


def gradients(
    model: str, weights: torch.Tensor, x: torch.Tensor, y: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """The gradient of each of the stacked models (D, n), layer by layer as in `layers`."""
    parameters = [p.detach().requires_grad_() for p in layers(model, weights)]
    with torch.enable_grad():
        return torch.autograd.grad(LOSSES[model](parameters, x, y), parameters)


def load(problem: Problem, dtype: str = "float32") -> tuple[torch.Tensor, torch.Tensor]:
    """The images as inputs of the models, and their labels."""
    pixels = normalise(problem.model, problem.images, dtype)
    images = torch.from_numpy(augmented(pixels) if problem.model == "svm" else pixels)
    return images.to(DEVICE), torch.from_numpy(problem.labels.astype(np.int64)).to(DEVICE)


def run(
    problem: Problem,
    dtype: str = "float32",
    loaded: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> Trajectory:
    """All iterations of all runs, block by block."""
    images, labels = loaded or load(problem, dtype)
    finished = [
        _run_block(block, images, labels) for block in blocks(problem, RUNS_AT_ONCE[problem.model])
    ]
    weights, fired = (np.concatenate(part) for part in zip(*finished, strict=True))
    return Trajectory(weights, fired, transmission_time(problem, fired))


@torch.no_grad()
def _run_block(
    problem: Problem, images: torch.Tensor, labels: torch.Tensor
) -> tuple[np.ndarray, np.ndarray]:
    """The final weights (R, m, n) and broadcasts (R, K, m)."""
    size = problem.weights.shape[-1]
    weights = torch.tensor(problem.weights, dtype=images.dtype, device=DEVICE)
    last_broadcast, spare = weights.clone(), torch.empty_like(weights)
    adjacency = torch.tensor(problem.adjacency, device=DEVICE)
    link_weight = torch.from_numpy(metropolis_weights(problem.adjacency)).to(images)
    threshold = torch.from_numpy(problem.threshold).to(images) * math.sqrt(size)
    samples = torch.tensor(problem.samples.swapaxes(0, 1), device=DEVICE).flatten(1, 2)
    history = []
    for chosen, rate in zip(samples, rates(problem), strict=True):
        # Event 2.
        torch.sub(weights, last_broadcast, out=spare)
        fired = torch.linalg.vector_norm(spare, dim=-1) >= threshold * rate
        used = (fired.unsqueeze(-1) | fired.unsqueeze(-2)).logical_and_(adjacency)
        transition = link_weight * used
        transition.diagonal(dim1=-2, dim2=-1).copy_(1 - transition.sum(-1))
        # Events 3 and 4, with the gradient of the models before they are mixed.
        flat = weights.view(-1, size)
        gradient = gradients(problem.model, flat, images[chosen], labels[chosen])
        mixed = torch.bmm(transition, weights, out=spare)
        for part, slope in zip(layers(problem.model, mixed.view(-1, size)), gradient, strict=True):
            part.sub_(slope, alpha=rate)
        last_broadcast[fired] = weights[fired]
        weights, spare = mixed, weights
        history.append(fired)
    return weights.cpu().numpy(), torch.stack(history, dim=1).cpu().numpy()


@torch.inference_mode()
def evaluate(
    model: str, weights: np.ndarray, images: np.ndarray, labels: np.ndarray, dtype: str = "float32"
) -> np.ndarray:
    """The accuracy of each device's model (m, n) on all images: (m,)."""
    parameters = layers(model, torch.from_numpy(weights.astype(dtype)).to(DEVICE))
    scores = {"svm": _svm_scores, "lenet5": _lenet5_scores}[model]
    hits = torch.zeros(len(weights), dtype=torch.int64, device=DEVICE)
    chunk = {"svm": 1000, "lenet5": 100}[model]
    for start in range(0, len(images), chunk):
        x = torch.from_numpy(normalise(model, images[start : start + chunk], dtype)).to(DEVICE)
        y = torch.from_numpy(labels[start : start + chunk].astype(np.int64)).to(DEVICE)
        hits += (scores(parameters, x).argmax(-1) == y.unsqueeze(-1)).sum(0)
    return hits.cpu().numpy() / len(images)


def _svm_scores(parameters: list[torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """Scores (N, m, class) of shared images (N, 28, 28)."""
    table = parameters[0].flatten(0, 1)
    scores = torch.addmm(table[:, -1], x.flatten(1), table[:, :-1].T)
    return scores.unflatten(-1, (-1, CLASSES))


def _lenet5_scores(parameters: list[torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """Scores (N, m, class) of shared images (N, 32, 32): one convolution holds all first layers."""
    w1, b1, w2, b2, *rest = parameters
    x = F.conv2d(x.unsqueeze(1), w1.reshape(-1, 1, 5, 5), b1.flatten())
    x = F.avg_pool2d(x.tanh_(), 2)
    # Grouped convolutions are slower here than a loop over the models.
    own = zip(x.split(6, dim=1), w2.unflatten(-1, (6, 5, 5)), b2, strict=True)
    x = torch.stack([F.avg_pool2d(F.conv2d(*inputs).tanh_(), 2).flatten(1) for inputs in own])
    return _dense_layers(x, rest).transpose(0, 1)
