"""What a model is: pure functions on one flat row of parameters, so that m models are one matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, UInt8

PIXEL_MEAN, PIXEL_STD = 0.1307, 0.3081


Loss = Callable[[Float[Array, "batch class"], Int[Array, "batch"]], Float[Array, "batch"]]


class Model(NamedTuple):
    """A classifier whose parameters are one row of length `size`.

    Attributes:
        size: number of parameters, n.
        init: from a key to a random row.
        logits: from a row and normalised images (batch, height, width) to scores (batch, class).
        loss: from scores and labels to the loss of each sample; optax's losses fit as they are.
    """

    size: int
    init: Callable[[Key[Array, ""]], Float[Array, "parameter"]]
    logits: Callable[
        [Float[Array, "parameter"], Float[Array, "batch height width"]], Float[Array, "batch class"]
    ]
    loss: Loss


def normalise(images: UInt8[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Pixels to [0, 1], then to about zero mean and unit variance: (x/255 − 0.1307) / 0.3081."""
    scale = 1 / (255 * PIXEL_STD)
    return images.astype(jnp.result_type(float)) * scale - PIXEL_MEAN / PIXEL_STD
