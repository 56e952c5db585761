"""Validation of compressors that users register."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from efhc_jax.compressors import COMPRESSORS
from efhc_jax.compressors.base import SETTINGS, Compressor
from efhc_jax.errors import ExperimentError
from efhc_jax.members import check_functions, said_of_member
from efhc_jax.members.tracing import check_leaves_out_host, explained

_DEVICES = 3  # of the vectors that a compressor is tried on


def check_compressor(name: str, compressor: Any) -> None:
    """Raise unless it is a `Compressor` of functions, which states correctly which settings it uses.

    Raises:
        ExperimentError: it is not; the message has its name and what to do.
    """
    source = f"method.compressor={name!r}"
    if not isinstance(compressor, Compressor):
        raise ExperimentError(
            f"{source}: is a {type(compressor).__name__}; register "
            "efhc_jax.Compressor(compress, numbers, uses, contraction)"
        )
    check_functions(source, compressor, ("compress", "numbers", "contraction"))
    if not (isinstance(compressor.uses, tuple) and set(compressor.uses) <= set(SETTINGS)):
        raise ExperimentError(
            f"{source}: uses={compressor.uses!r}; give a tuple of some of {', '.join(SETTINGS)}"
        )


def check_compression(name: str, settings: Any, arrays: Any, shape: tuple[int, ...]) -> None:
    """Raise unless a compressor can be traced, and gives vectors and bits of the right shapes.

    Args:
        name: the compressor.
        settings: of the method, as Python numbers.
        arrays: the same, as values of the program.
        shape: of the parameters of a device.

    Raises:
        ExperimentError: it cannot; the message has its name and what to do.
    """
    if COMPRESSORS.is_built_in(name):
        return
    source, compressor = f"method.compressor={name!r}", COMPRESSORS[name]
    check_compressor(name, compressor)
    vectors = jax.ShapeDtypeStruct((_DEVICES, *shape), jnp.result_type(float))

    def compress(vectors: Any, arrays: Any) -> Any:
        return compressor.compress(vectors, arrays, lambda positions: positions.astype(jnp.uint32))

    try:
        program, found = jax.make_jaxpr(compress, return_shape=True)(vectors, arrays)
    except Exception as error:  # whatever the user's function raises
        raise ExperimentError(f"{source}: {explained(error, 'compress')}") from error
    if not (isinstance(found, tuple) and len(found) == 2):
        raise ExperimentError(
            f"{source}: compress gives a {type(found).__name__}; return the vectors and their bits"
        )
    _check_shape(source, "vectors", found[0], vectors, "as the vectors that it takes")
    bits = jax.ShapeDtypeStruct((_DEVICES,), vectors.dtype)
    _check_shape(source, "bits", found[1], bits, "a number for each device")
    check_leaves_out_host(source, "compress calls Python in every iteration", program.jaxpr)
    with said_of_member(source, "numbers"):
        numbers = compressor.numbers(math.prod(shape), settings)
    if not (isinstance(numbers, int | float) and 0 < numbers < math.inf):
        raise ExperimentError(
            f"{source}: numbers gives {numbers!r}; return the largest size of a message, in numbers of "
            "32 bits"
        )


def _check_shape(source: str, part: str, found: Any, wanted: Any, meaning: str) -> None:
    """Raise unless a part of what compress gives has a shape and type."""
    if (getattr(found, "shape", None), getattr(found, "dtype", None)) != (wanted.shape, wanted.dtype):
        kind = f"{found.dtype} {found.shape}" if hasattr(found, "dtype") else type(found).__name__
        raise ExperimentError(
            f"{source}: compress gives {part} of {kind}; return {wanted.dtype} {wanted.shape}, {meaning}"
        )
