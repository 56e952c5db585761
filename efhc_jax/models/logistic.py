"""Multinomial logistic regression: a linear model with cross-entropy loss. Smooth and convex."""

from __future__ import annotations

import math

import optax

from efhc_jax.models.base import Model
from efhc_jax.models.linear import linear
from efhc_jax.models.properties import GradientBounds, Properties

PROPERTIES = Properties(
    convex=True,
    # Larger weights are always better if a plane separates the classes.
    in_words="is convex; it has a minimiser only if its classes overlap",
    # The gradient by the scores is p − e_y with probabilities p. Its squared length, (1 − p_y)² +
    # Σ_{c≠y} p_c², is at most 2(1 − p_y)² ≤ 2. Approached when all of p is on one wrong class.
    score_gradient=GradientBounds(math.sqrt(2), 1.0),
    lowest_loss=0.0,
)


def logistic(image_shape: tuple[int, int], classes: int) -> Model:
    """Softmax regression; n = 7,850 for 28×28 images in ten classes."""
    return linear(image_shape, classes, optax.softmax_cross_entropy_with_integer_labels, PROPERTIES)
