"""SVM: a linear model under the multi-class hinge loss. Convex, with bounded gradients."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from efhc_jax.models.base import Model
from efhc_jax.models.linear import linear


def hinge(logits: Float[Array, "batch class"], labels: Int[Array, "batch"]) -> Float[Array, "batch"]:
    """(1/C) Σ_{c≠y} max(0, 1 − s_y + s_c): every class should stay a margin of 1 below the label.

    Example:
        >>> hinge(jnp.array([[2.0, 1.5, -3.0]]), jnp.array([0])).tolist()
        [0.1666666716337204]
    """
    classes = logits.shape[-1]
    is_label = labels[:, None] == jnp.arange(classes)
    score = jnp.sum(jnp.where(is_label, logits, 0), axis=-1, keepdims=True)
    margins = jnp.maximum(1 - score + logits, 0)
    return jnp.sum(jnp.where(is_label, 0, margins), axis=-1) / classes


def svm(image_shape: tuple[int, int], classes: int) -> Model:
    """Linear SVM; n = 7,850 for 28×28 images in ten classes."""
    return linear(image_shape, classes, hinge)
