"""Where PyTorch computes: on a GPU if it has one."""

from __future__ import annotations

import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def wait(result: torch.Tensor) -> torch.Tensor:
    """The result when it is there."""
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    return result
