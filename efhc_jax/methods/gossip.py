"""Gossip: averaging of fresh models over the links in use, with local training. EF-HC, D-PSGD, DSpodFL.

Zehtabi et al., 2022, arXiv 2204.03726; Lian et al., 2017, arXiv 1705.09056 (every device sends always);
Zehtabi et al., 2025, arXiv 2402.03448 (devices and links take part at random).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from efhc_jax.methods.base import Method, Turn, Updated

if TYPE_CHECKING:
    from efhc_jax.methods.base import Memory


def update(turn: Turn, parameters: Any, memory: Memory) -> Updated:
    """W(k+1) = P(k)·W(k) + Δ(k), that is P(k)·W(k) − α(k)·G(k) with a single gradient step."""
    return Updated(turn.trained(turn.mix(turn.weights)))


METHOD = Method(update, local_training=True)
