"""Multinomial logistic regression: a linear model with cross-entropy loss. Smooth and convex."""

from __future__ import annotations

import optax

from efhc_jax.models.base import Model
from efhc_jax.models.linear import linear


def logistic(image_shape: tuple[int, int], classes: int) -> Model:
    """Softmax regression; n = 7,850 for 28×28 images in ten classes."""
    return linear(image_shape, classes, optax.softmax_cross_entropy_with_integer_labels)
