"""Policies, one per file, with an entry each in `POLICIES`.

A policy is selected by a traced index, so that runs with different policies share a compiled program.
"""

from efhc_jax.members import Registry, lazily
from efhc_jax.policies.base import Policy, Situation

POLICIES: Registry[Policy] = Registry(
    {
        "efhc": "efhc_jax.policies.efhc:POLICY",
        "gt": "efhc_jax.policies.gt:POLICY",
        "zt": "efhc_jax.policies.zt:POLICY",
        "rg": "efhc_jax.policies.rg:POLICY",
        "local": "efhc_jax.policies.local:POLICY",
        "central": "efhc_jax.policies.central:POLICY",
        "adaptive": "efhc_jax.policies.adaptive:POLICY",
    }
)

__getattr__ = lazily(__name__, {"Adaptive": "adaptive"})

__all__ = ["POLICIES", "Policy", "Situation"]
