"""EF-HC: decentralized, event-triggered federated learning, simulated in matrix form on JAX.

Names are imported when they are first used, so that `import efhc_jax` is cheap.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # importing typing for it would cost more than all the rest

if TYPE_CHECKING:
    from typing import Any

    from efhc_jax.analysis import at_budget, compare, interval
    from efhc_jax.audits import audit, suggest_r
    from efhc_jax.config import Experiment
    from efhc_jax.data import Dataset, load_dataset
    from efhc_jax.errors import DataError, EfhcError, ExperimentError
    from efhc_jax.graphs import GRAPHS, from_networkx
    from efhc_jax.mixing import metropolis_weights, mix, transition_matrix, used_links
    from efhc_jax.models import MODELS, make_model
    from efhc_jax.models.base import Model
    from efhc_jax.models.flax_nnx import from_nnx
    from efhc_jax.plots import plot
    from efhc_jax.policies import POLICIES, Policy, Situation
    from efhc_jax.results import load, save
    from efhc_jax.simulation import DivergedError, simulate
    from efhc_jax.sweeps import sweep
    from efhc_jax.verification import verify

_HOMES = {
    "Experiment": "config",
    "Dataset": "data",
    "load_dataset": "data",
    "DataError": "errors",
    "EfhcError": "errors",
    "ExperimentError": "errors",
    "GRAPHS": "graphs",
    "from_networkx": "graphs",
    "metropolis_weights": "mixing",
    "mix": "mixing",
    "transition_matrix": "mixing",
    "used_links": "mixing",
    "MODELS": "models",
    "make_model": "models",
    "Model": "models.base",
    "from_nnx": "models.flax_nnx",
    "plot": "plots",
    "POLICIES": "policies",
    "Policy": "policies",
    "Situation": "policies",
    "load": "results",
    "save": "results",
    "at_budget": "analysis",
    "audit": "audits",
    "suggest_r": "audits",
    "compare": "analysis",
    "interval": "analysis",
    "sweep": "sweeps",
    "DivergedError": "simulation",
    "simulate": "simulation",
    "verify": "verification",
}

__all__ = sorted(_HOMES)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(globals() | _HOMES)
