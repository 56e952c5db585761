"""Methods: what devices exchange, and how their models are updated. One per file, in `METHODS`.

The method is a static part of the compiled program; its numbers are values.
"""

from efhc_jax.members import Registry, lazily
from efhc_jax.methods.base import Method, Turn, Updated

METHODS: Registry[Method] = Registry(
    {
        "gossip": "efhc_jax.methods.gossip:METHOD",
        "copies": "efhc_jax.methods.copies:METHOD",
        "choco": "efhc_jax.methods.copies:CHOCO",
        "sparq": "efhc_jax.methods.copies:SPARQ",
        "tracking": "efhc_jax.methods.tracking:METHOD",
        "d2": "efhc_jax.methods.d2:METHOD",
        "extra": "efhc_jax.methods.extra:METHOD",
        "qg_momentum": "efhc_jax.methods.qg_momentum:METHOD",
    }
)

__getattr__ = lazily(
    __name__,
    {"Copies": "copies", "Choco": "copies", "Sparq": "copies", "QGMomentum": "qg_momentum"},
)

__all__ = ["METHODS", "Method", "Turn", "Updated"]
