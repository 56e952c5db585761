"""Compressors of messages, one per file, with an entry each in `COMPRESSORS`."""

from efhc_jax.compressors.base import Compressor
from efhc_jax.members import Registry

COMPRESSORS: Registry[Compressor] = Registry(
    {
        "none": "efhc_jax.compressors.none:COMPRESSOR",
        "top_k": "efhc_jax.compressors.top_k:COMPRESSOR",
        "random_k": "efhc_jax.compressors.random_k:COMPRESSOR",
        "sign": "efhc_jax.compressors.sign:COMPRESSOR",
        "qsgd": "efhc_jax.compressors.qsgd:COMPRESSOR",
    }
)

__all__ = ["COMPRESSORS", "Compressor"]
