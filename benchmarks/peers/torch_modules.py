"""EF-HC in common PyTorch style: a module and an optimizer per device, and loops over devices."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from benchmarks.peers.problem import (
    CLASSES,
    SHAPES,
    Problem,
    Trajectory,
    metropolis_weights,
    normalise,
    rates,
    transmission_time,
)
from benchmarks.peers.torch_device import DEVICE

LOSSES = {"svm": F.multi_margin_loss, "lenet5": F.cross_entropy, "cnn": F.cross_entropy}


def make_module(model: str) -> nn.Module:
    """An untrained module that maps images (batch, 1, height, width) to scores (batch, class)."""
    if model == "svm":
        return nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, CLASSES))
    if model == "cnn":
        return nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(7 * 7 * 32, 64),
            nn.ReLU(),
            nn.Linear(64, CLASSES),
        )
    return nn.Sequential(
        nn.Conv2d(1, 6, 5),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(16, 120, 5),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(120, 84),
        nn.Tanh(),
        nn.Linear(84, CLASSES),
    )


@torch.no_grad()
def load_row(model: str, module: nn.Module, row: torch.Tensor) -> nn.Module:
    """The module with its parameters taken from a flat row."""
    if model == "svm":  # in the row, the bias of each class follows its weights
        table = row.view(CLASSES, -1)
        row = torch.cat([table[:, :-1].flatten(), table[:, -1]])
    if model == "cnn":
        row = torch.cat([part.flatten() for part in _cnn_parameters(row)])
    vector_to_parameters(row.clone(), module.parameters())
    return module


@torch.no_grad()
def to_row(model: str, module: nn.Module) -> torch.Tensor:
    """The module's parameters as a flat row."""
    if model == "svm":
        linear = module[1]
        return torch.cat([linear.weight, linear.bias[:, None]], dim=1).flatten()
    if model == "cnn":
        return _cnn_row(list(module.parameters()))
    return parameters_to_vector(module.parameters())


def _cnn_parameters(row: torch.Tensor) -> list[torch.Tensor]:
    """The parameters of the CNN's module, from a row in the order of Flax.

    Flax has the channels of images last, and weights as (height, width, inputs, outputs).
    """
    shapes = SHAPES["cnn"]
    parts = row.split([math.prod(shape) for shape in shapes])
    b1, w1, b2, w2, b3, w3, b4, w4 = (p.view(s) for p, s in zip(parts, shapes, strict=True))
    w3 = w3.view(7, 7, 32, 64).permute(3, 2, 0, 1)
    return [w1.permute(3, 2, 0, 1), b1, w2.permute(3, 2, 0, 1), b2, w3, b3, w4.T, b4]


def _cnn_row(parameters: list[torch.Tensor]) -> torch.Tensor:
    """The row of the CNN's parameters: the inverse of `_cnn_parameters`."""
    w1, b1, w2, b2, w3, b3, w4, b4 = parameters
    w3 = w3.view(64, 32, 7, 7).permute(2, 3, 1, 0)
    parts = [b1, w1.permute(2, 3, 1, 0), b2, w2.permute(2, 3, 1, 0), b3, w3, b4, w4.T]
    return torch.cat([part.flatten() for part in parts])


class Device:
    """Device i: its model w_i, its optimizer, and its last broadcast ŵ_i."""

    def __init__(self, model: str, row: torch.Tensor, threshold: float):
        self.module = load_row(model, make_module(model).to(row), row)
        self.loss = LOSSES[model]
        self.optimizer = torch.optim.SGD(self.module.parameters(), lr=1.0)
        self.threshold = threshold
        self.last_broadcast = self.vector()

    @torch.no_grad()
    def vector(self) -> torch.Tensor:
        """A copy of w_i."""
        return parameters_to_vector(self.module.parameters())

    def wants_to_broadcast(self, vector: torch.Tensor, rate: float) -> bool:
        """Event 2: whether w_i has moved far enough, n^(-1/2)·‖w_i − ŵ_i‖ ≥ r·ρ_i·γ(k)."""
        deviation = torch.linalg.vector_norm(vector - self.last_broadcast) / len(vector) ** 0.5
        return deviation.item() >= self.threshold * rate

    def compute_gradient(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        """The gradient at w_i(k), kept with the parameters until `descend`."""
        self.optimizer.zero_grad()
        self.loss(self.module(images), labels).backward()

    def aggregate(self, mixed: torch.Tensor) -> None:
        """Event 3: replace the model by the average with those of its neighbours."""
        vector_to_parameters(mixed, self.module.parameters())

    def descend(self, rate: float) -> None:
        """Event 4: gradient descent."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()


def load(problem: Problem, dtype: str = "float32") -> tuple[torch.Tensor, torch.Tensor]:
    """Images (N, 1, height, width) and labels."""
    images = torch.from_numpy(normalise(problem.model, problem.images, dtype)).unsqueeze(1)
    return images.to(DEVICE), torch.from_numpy(problem.labels.astype(np.int64)).to(DEVICE)


def run(
    problem: Problem,
    dtype: str = "float32",
    loaded: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> Trajectory:
    """All iterations of all runs, one run after the other."""
    images, labels = loaded or load(problem, dtype)
    finished = [_run_one(problem, run, images, labels) for run in range(len(problem.weights))]
    weights, fired = (np.stack(part) for part in zip(*finished, strict=True))
    return Trajectory(weights, fired, transmission_time(problem, fired))


def _run_one(
    problem: Problem, run: int, images: torch.Tensor, labels: torch.Tensor
) -> tuple[np.ndarray, np.ndarray]:
    """The final weights (m, n) and broadcasts (K, m) of one run."""
    adjacency, samples = problem.adjacency[run], torch.from_numpy(problem.samples[run]).to(DEVICE)
    link_weight = metropolis_weights(adjacency).tolist()
    neighbours = [np.flatnonzero(row).tolist() for row in adjacency]
    rows = torch.from_numpy(problem.weights[run]).to(images)
    devices = [
        Device(problem.model, row, float(threshold))
        for row, threshold in zip(rows, problem.threshold[run], strict=True)
    ]
    history = []
    for k, rate in enumerate(rates(problem)):
        vectors = [device.vector() for device in devices]
        fired = [
            device.wants_to_broadcast(vector, rate)
            for device, vector in zip(devices, vectors, strict=True)
        ]
        for i, device in enumerate(devices):
            device.compute_gradient(images[samples[k, i]], labels[samples[k, i]])
        for i, device in enumerate(devices):
            received = [j for j in neighbours[i] if fired[i] or fired[j]]
            if received:
                mixed = vectors[i].clone()
                for j in received:
                    mixed += link_weight[i][j] * (vectors[j] - vectors[i])
                device.aggregate(mixed)
            if fired[i]:
                device.last_broadcast = vectors[i]
            device.descend(rate)
        history.append(fired)
    weights = torch.stack([to_row(problem.model, device.module) for device in devices])
    return weights.cpu().numpy(), np.array(history, dtype=bool)


@torch.inference_mode()
def evaluate(
    model: str, weights: np.ndarray, images: np.ndarray, labels: np.ndarray, dtype: str = "float32"
) -> np.ndarray:
    """The accuracy of each device's model (m, n) on all images: (m,)."""
    inputs = torch.from_numpy(normalise(model, images, dtype)).unsqueeze(1).to(DEVICE)
    targets = torch.from_numpy(labels.astype(np.int64)).to(DEVICE)
    accuracy = []
    for row in torch.from_numpy(weights).to(inputs):
        module = load_row(model, make_module(model).to(inputs), row)
        hits = [
            (module(x).argmax(-1) == y).sum()
            for x, y in zip(inputs.split(500), targets.split(500), strict=True)
        ]
        accuracy.append(sum(hits).item() / len(labels))
    return np.array(accuracy)
