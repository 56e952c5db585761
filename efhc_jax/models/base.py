"""The type of all models: pure functions of one row of parameters, so that m models are one array."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, UInt8

from efhc_jax.models.properties import NOTHING_KNOWN, Properties

PIXEL_MEAN, PIXEL_STD = 0.1307, 0.3081


Loss = Callable[[Float[Array, "batch class"], Int[Array, "batch"]], Float[Array, "batch"]]

Logits = Callable[
    [Float[Array, "*parameters"], Float[Array, "batch height width"]], Float[Array, "batch class"]
]

LogitsOfAll = Callable[
    [Float[Array, "row *parameters"], Float[Array, "batch height width"]],
    Float[Array, "row batch class"],
]


class Model(NamedTuple):
    """A classifier whose n parameters are one row.

    A row is an array of any shape that suits the model. It counts as a vector of n numbers everywhere,
    but its shape tells the compiler what is contiguous.

    Attributes:
        size: number of parameters, n.
        init: function from a key to a random row.
        logits: function from a row and normalised images (batch, height, width) to scores
            (batch, class).
        loss: function from scores and labels to the loss of each sample, such as optax's losses.
        logits_of_all: optional, like `logits` for many rows on the same images, with scores
            (row, batch, class); by default, `logits` is mapped over the rows.
        images_at_once: number of images per call of `logits_of_all` on a CPU.
        properties: what is known about the loss, such as its convexity; the audit uses it.
        logits_on_cpu: optional, the same scores as `logits` in a form whose gradient is faster on a CPU.
        images_on_accelerators: number of images per call of `logits_of_all` on other platforms.
    """

    size: int
    init: Callable[[Key[Array, ""]], Float[Array, "*parameters"]]
    logits: Logits
    loss: Loss
    logits_of_all: LogitsOfAll | None = None
    images_at_once: int = 500
    properties: Properties = NOTHING_KNOWN
    logits_on_cpu: Logits | None = None
    images_on_accelerators: int = 2000


def logits_of_all(
    model: Model, rows: Float[Array, "row *parameters"], images: Float[Array, "batch height width"]
) -> Float[Array, "row batch class"]:
    """Scores of every row on the same images."""
    if model.logits_of_all is not None:
        return model.logits_of_all(rows, images)
    return jax.vmap(model.logits, (0, None))(rows, images)


def normalise(images: UInt8[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Pixels scaled to about zero mean and unit variance: (x/255 − 0.1307) / 0.3081."""
    scale = 1 / (255 * PIXEL_STD)
    return images.astype(jnp.result_type(float)) * scale - PIXEL_MEAN / PIXEL_STD
