"""Optimizers of the devices' local steps, one per file, with an entry each in `OPTIMIZERS`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from efhc_jax.members import Registry, lazily

if TYPE_CHECKING:
    from efhc_jax.optimizers.base import Optimizer

OPTIMIZERS: Registry[Optimizer] = Registry(
    {
        "sgd": "efhc_jax.optimizers.sgd:OPTIMIZER",
        "momentum": "efhc_jax.optimizers.momentum:OPTIMIZER",
        "nesterov": "efhc_jax.optimizers.nesterov:OPTIMIZER",
        "adam": "efhc_jax.optimizers.adam:OPTIMIZER",
    }
)

__getattr__ = lazily(
    __name__, {"Adam": "adam", "Momentum": "momentum", "Nesterov": "nesterov", "Sgd": "sgd"}
)
