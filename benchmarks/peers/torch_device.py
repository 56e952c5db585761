"""The device of PyTorch: a GPU if there is one."""

from __future__ import annotations

import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def wait(result: torch.Tensor) -> torch.Tensor:
    """The result, after waiting for it."""
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    return result
