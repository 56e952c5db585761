"""Rows of W: the models of all devices as one array (device, *parameters)."""

from __future__ import annotations

from jaxtyping import Array, Float, Shaped


def parameters_of(weights: Float[Array, "device *parameters"]) -> tuple[int, ...]:
    """The axes of a device's parameters."""
    return tuple(range(1, weights.ndim))


def for_each(
    values: Shaped[Array, "device"], weights: Float[Array, "device *parameters"]
) -> Shaped[Array, "device *ones"]:
    """One value per device, in a shape that broadcasts over the parameters of the device."""
    return values.reshape(-1, *(1 for _ in weights.shape[1:]))
