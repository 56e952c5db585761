"""Policies, one per file, with an entry each in `POLICIES`.

A policy is selected by a traced index, so that runs with different policies share a compiled program.
"""

from efhc_jax.policies import central, efhc, gt, local, rg, zt
from efhc_jax.policies.base import Policy, Situation

POLICIES: dict[str, Policy] = {
    "efhc": efhc.POLICY,
    "gt": gt.POLICY,
    "zt": zt.POLICY,
    "rg": rg.POLICY,
    "local": local.POLICY,
    "central": central.POLICY,
}

BUILT_IN = tuple(POLICIES.items())

__all__ = ["BUILT_IN", "POLICIES", "Policy", "Situation"]
