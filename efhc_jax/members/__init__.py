"""Members of families: what every policy, dynamics, graph, split, model and schedule has in common.

A member is a NamedTuple of pure functions, and a frozen dataclass of its own parameters. From the
dataclass alone follow validation, flags, tables in TOML files, storage, and axes of a sweep.
"""

from efhc_jax.members.failures import check_functions, said_of_member
from efhc_jax.members.limits import Limit, shown
from efhc_jax.members.parameters import (
    Parameter,
    declared,
    is_traced,
    make_parameters,
    parameter,
    parameters_class,
)
from efhc_jax.members.registry import Registry, lazily

__all__ = [
    "Limit",
    "Parameter",
    "Registry",
    "check_functions",
    "declared",
    "is_traced",
    "lazily",
    "make_parameters",
    "parameter",
    "parameters_class",
    "said_of_member",
    "shown",
]
