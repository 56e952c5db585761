"""EF-HC: decentralized, event-triggered federated learning, simulated in matrix form on JAX.

Names are imported when they are first used, so that `import efhc_jax` is cheap.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # importing typing for it would cost more than all the rest

if TYPE_CHECKING:
    from typing import Any

    from efhc_jax.compressors import COMPRESSORS, Compressor
    from efhc_jax.data import DATASETS, SPLITS, Dataset, load_dataset
    from efhc_jax.data.splits import Split
    from efhc_jax.engine.mixing import metropolis_weights, mix, transition_matrix
    from efhc_jax.errors import DataError, EfhcError, ExperimentError
    from efhc_jax.experiment.experiment import Experiment
    from efhc_jax.members import parameter
    from efhc_jax.methods import METHODS, Method, Turn
    from efhc_jax.methods.base import Updated
    from efhc_jax.models import MODELS, Architecture, make_model
    from efhc_jax.models.base import Model
    from efhc_jax.models.flax_nnx import from_nnx
    from efhc_jax.network.dynamics import DYNAMICS
    from efhc_jax.network.dynamics.base import Dynamics, Snapshot
    from efhc_jax.network.links import used_links
    from efhc_jax.network.topologies import GRAPHS, Graph, from_networkx
    from efhc_jax.optimizers import OPTIMIZERS
    from efhc_jax.optimizers.base import Optimizer
    from efhc_jax.participation import PARTICIPATION
    from efhc_jax.participation.base import Participation
    from efhc_jax.plotting.plots import plot
    from efhc_jax.policies import POLICIES, Policy, Situation
    from efhc_jax.results.statistics import at_budget, compare, interval
    from efhc_jax.runs.simulation import DivergedError, simulate
    from efhc_jax.runs.sweeps import sweep
    from efhc_jax.runs.verification import verify
    from efhc_jax.schedules import SCHEDULES
    from efhc_jax.schedules.base import Schedule
    from efhc_jax.storage.netcdf import load, save
    from efhc_jax.theory.audits import audit, suggest_r

_HOMES = {
    "Experiment": "experiment.experiment",
    "Dataset": "data",
    "DATASETS": "data",
    "SPLITS": "data",
    "Split": "data.splits",
    "load_dataset": "data",
    "DataError": "errors",
    "EfhcError": "errors",
    "ExperimentError": "errors",
    "parameter": "members",
    "DYNAMICS": "network.dynamics",
    "Dynamics": "network.dynamics.base",
    "Snapshot": "network.dynamics.base",
    "GRAPHS": "network.topologies",
    "Graph": "network.topologies",
    "from_networkx": "network.topologies",
    "metropolis_weights": "engine.mixing",
    "mix": "engine.mixing",
    "transition_matrix": "engine.mixing",
    "used_links": "network.links",
    "COMPRESSORS": "compressors",
    "Compressor": "compressors",
    "METHODS": "methods",
    "Method": "methods",
    "Turn": "methods",
    "Updated": "methods.base",
    "MODELS": "models",
    "Architecture": "models",
    "make_model": "models",
    "Model": "models.base",
    "from_nnx": "models.flax_nnx",
    "OPTIMIZERS": "optimizers",
    "Optimizer": "optimizers.base",
    "PARTICIPATION": "participation",
    "Participation": "participation.base",
    "plot": "plotting.plots",
    "POLICIES": "policies",
    "Policy": "policies",
    "Situation": "policies",
    "SCHEDULES": "schedules",
    "Schedule": "schedules.base",
    "load": "storage.netcdf",
    "save": "storage.netcdf",
    "at_budget": "results.statistics",
    "audit": "theory.audits",
    "suggest_r": "theory.audits",
    "compare": "results.statistics",
    "interval": "results.statistics",
    "sweep": "runs.sweeps",
    "DivergedError": "runs.simulation",
    "simulate": "runs.simulation",
    "verify": "runs.verification",
}

_ROOMS = {  # with the parameters of their members, such as `dynamics.Markov(failure=0.1)`
    "dynamics": "network.dynamics",
    "methods": "methods",
    "policies": "policies",
    "optimizers": "optimizers",
    "participation": "participation",
    "schedules": "schedules",
    "graphs": "network.topologies",
}

__all__ = sorted(_HOMES)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"{__name__}.{_ROOMS[name]}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(globals() | _HOMES | _ROOMS)
