"""SVM: a linear model with multi-class hinge loss. Convex, with bounded gradients."""

from __future__ import annotations

import functools
import math

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from efhc_jax.models.base import Loss, Model
from efhc_jax.models.linear import linear
from efhc_jax.models.properties import GradientBounds, Properties

_WIDTHS = (1.0, 0.1, 0.01)  # of the smoothed hinge losses that lead to the optimum


def hinge(logits: Float[Array, "batch class"], labels: Int[Array, "batch"]) -> Float[Array, "batch"]:
    """Multi-class hinge loss with a margin of 1: (1/C) Σ_{c≠y} max(0, 1 − s_y + s_c).

    Example:
        >>> hinge(jnp.array([[2.0, 1.5, -3.0]]), jnp.array([0])).tolist()
        [0.1666666716337204]
    """
    missing, is_label = _missing_margins(logits, labels)
    return jnp.mean(jnp.where(is_label, 0, jnp.maximum(missing, 0)), axis=-1)


@functools.cache
def smoothed_hinge(width: float) -> Loss:
    """Smooth hinge loss: below the hinge loss, by at most (C − 1)/C·width/2.

    max(0, t) becomes t²/(2·width) for t from 0 to the width, and t − width/2 beyond.

    Example:
        >>> smoothed_hinge(1.0)(jnp.array([[2.0, 1.5, -3.0]]), jnp.array([0])).tolist()
        [0.0416666679084301]
    """

    def loss(logits: Float[Array, "batch class"], labels: Int[Array, "batch"]) -> Float[Array, "batch"]:
        missing, is_label = _missing_margins(logits, labels)
        bent = jnp.clip(missing, 0, width)
        smooth = bent**2 / (2 * width) + jnp.maximum(missing - width, 0)
        return jnp.mean(jnp.where(is_label, 0, smooth), axis=-1)

    return loss


def _missing_margins(logits: Array, labels: Array) -> tuple[Array, Array]:
    """1 − s_y + s_c for every class c, and whether c is the label."""
    is_label = labels[:, None] == jnp.arange(logits.shape[-1])
    score = jnp.sum(jnp.where(is_label, logits, 0), axis=-1, keepdims=True)
    return 1 - score + logits, is_label


def svm(image_shape: tuple[int, int], classes: int) -> Model:
    """Linear SVM; n = 7,850 for 28×28 images in ten classes."""
    return linear(image_shape, classes, hinge, _properties(classes))


def _properties(classes: int) -> Properties:
    """Properties of the hinge loss: F is piecewise linear and bounded below, so it has a minimiser.

    With a ≤ C − 1 violated margins, the loss's gradient by the scores has a entries 1/C and one −a/C.
    Its 2-norm is √(a + a²)/C ≤ √((C−1)/C) and its maximum norm a/C ≤ (C−1)/C, reached when all margins
    are violated.
    """
    share = (classes - 1) / classes
    return Properties(
        convex=True,
        has_minimiser=True,
        score_gradient=GradientBounds(math.sqrt(share), share),
        lowest_loss=0.0,
        smooth_losses=tuple(smoothed_hinge(width) for width in _WIDTHS),
    )
