"""Dynamics of a network, one per file, with an entry each in `DYNAMICS`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from efhc_jax.members import Registry, lazily

if TYPE_CHECKING:
    from efhc_jax.network.dynamics.base import Dynamics

DYNAMICS: Registry[Dynamics] = Registry(
    {
        "static": "efhc_jax.network.dynamics.static:DYNAMICS",
        "failures": "efhc_jax.network.dynamics.failures:DYNAMICS",
        "markov": "efhc_jax.network.dynamics.markov:DYNAMICS",
        "periodic": "efhc_jax.network.dynamics.periodic:DYNAMICS",
        "mobility": "efhc_jax.network.dynamics.mobility:DYNAMICS",
        "churn": "efhc_jax.network.dynamics.churn:DYNAMICS",
        "trace": "efhc_jax.network.dynamics.trace:DYNAMICS",
    }
)

__getattr__ = lazily(
    __name__,
    {
        "Churn": "churn",
        "Failures": "failures",
        "Markov": "markov",
        "Mobility": "mobility",
        "Periodic": "periodic",
    },
)
