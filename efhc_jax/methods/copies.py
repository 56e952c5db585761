"""Stale copies: devices average with copies of their neighbours, to which they send compressed changes.

Event-Triggered Gossip, arXiv 2602.19116: whole messages, γ = 1. CHOCO-SGD, Koloskova et al., 2019,
arXiv 1902.00340: every device sends always. SPARQ-SGD, Singh et al., 2019, arXiv 1910.14280: a trigger
and several local steps. SQuARM-SGD, Singh et al., 2020, arXiv 2005.07041: with Nesterov's momentum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from efhc_jax.compressors import COMPRESSORS
from efhc_jax.compressors.base import SETTINGS
from efhc_jax.compressors.checks import check_compressor
from efhc_jax.errors import ExperimentError
from efhc_jax.members import parameter, shown
from efhc_jax.methods.base import Method, Turn, Updated
from efhc_jax.models.rows import for_each

if TYPE_CHECKING:
    from efhc_jax.methods.base import Memory

_RATIO = parameter(
    0.01, "Fraction of the entries that top_k and random_k keep.", low=0, high=1, above_low=True
)
_LEVELS = parameter(16, "Number of levels of qsgd.", low=1, high=2**16)
_GAMMA = "Step size γ of the averaging with copies."
# With ratio=0.01, models on fashion_mnist_mini move away from each other at γ = 0.05 and above.
_SMALL_GAMMA = parameter(0.02, _GAMMA, low=0, high=1, above_low=True)


class _Compressed:
    """Checks of the parameters of all methods with copies."""

    compressor: str

    def __post_init__(self) -> None:
        if self.compressor not in COMPRESSORS:
            raise ExperimentError(
                f"method.compressor={shown(self.compressor)}: unknown; "
                f"choose from {', '.join(COMPRESSORS)}"
            )
        if not COMPRESSORS.is_built_in(self.compressor):
            check_compressor(self.compressor, COMPRESSORS[self.compressor])


@dataclass(frozen=True)
class Copies(_Compressed):
    """Parameters of the method `copies`."""

    compressor: str = parameter("none", "Compressor: none, top_k, random_k, sign or qsgd.")
    ratio: float = _RATIO
    levels: int = _LEVELS
    gamma: float = parameter(1.0, _GAMMA, low=0, high=1, above_low=True)


@dataclass(frozen=True)
class Choco(_Compressed):
    """Parameters of the method `choco`."""

    compressor: str = parameter("top_k", "Compressor: none, top_k, random_k, sign or qsgd.")
    ratio: float = _RATIO
    levels: int = _LEVELS
    gamma: float = _SMALL_GAMMA


@dataclass(frozen=True)
class Sparq(_Compressed):
    """Parameters of the method `sparq`."""

    compressor: str = parameter("top_k", "Compressor: none, top_k, random_k, sign or qsgd.")
    ratio: float = _RATIO
    levels: int = _LEVELS
    gamma: float = _SMALL_GAMMA


def update(turn: Turn, parameters: Any, memory: Memory) -> Updated:
    """X½ = W + Δ; x̂_i ← x̂_i + C(x½_i − x̂_i) where i fired; W(k+1) = X½ + γ·(P − I)·X̂.

    P is over all links, because neighbours that did not fire hold copies as well.
    """
    compressor = COMPRESSORS[parameters.compressor]
    trained, copies = turn.trained(turn.weights), turn.last_broadcast
    compressed, bits = compressor.compress(trained - copies, parameters, turn.words)
    copies = turn.hold(jnp.where(for_each(turn.fired, copies), copies + compressed, copies))
    weights = trained + parameters.gamma * (turn.mix_all(copies) - copies)
    return Updated(weights, copies=copies, bits=bits)


def idle(parameters: Any) -> dict[str, str]:
    """The settings of other compressors."""
    used = COMPRESSORS[parameters.compressor].uses
    others = set(SETTINGS) - set(used)
    known = [one for one in COMPRESSORS if COMPRESSORS.is_built_in(one)]
    users = {
        name: " or ".join(repr(one) for one in known if name in COMPRESSORS[one].uses) for name in others
    }
    return {
        name: f"has no effect with method.compressor={parameters.compressor!r}; "
        f"give {users[name]}, or leave it out"
        for name in others
    }


def largest(size: int, parameters: Any) -> float:
    """A compressed message, or a whole copy over a new link."""
    return max(float(size), float(COMPRESSORS[parameters.compressor].numbers(size, parameters)))


METHOD = Method(
    update,
    parameters=Copies,
    keeps_copies=True,
    local_training=True,
    steadied_by=("gamma",),
    idle=idle,
    largest=largest,
)
CHOCO = METHOD._replace(parameters=Choco, always_sends=True, fixed_network=True)
SPARQ = METHOD._replace(parameters=Sparq, fixed_network=True)
