"""Properties of losses, from which the audit and the search for the optimum start."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np

    from efhc_jax.models.base import Loss


class GradientBounds(NamedTuple):
    """Bounds of all gradients for any weights: L in the 2-norm and L∞ in the maximum norm."""

    two: float
    infinity: float


class Properties(NamedTuple):
    """Known properties of a model's loss; by default, nothing is known.

    All values are hashable, because a model is a static argument of compiled functions.

    Attributes:
        convex: whether the loss of every sample is a convex function of the parameters; None if that
            is not known.
        has_minimiser: whether the mean loss has a minimiser, whatever the data.
        in_words: the finding about convexity, after the name of the model; by default, `convex` and
            `has_minimiser` in words.
        score_gradient: bounds of the loss's gradient by the scores. Only for linear models, with one
            weight per class and pixel and at most one bias per class: bounds of the gradient by the
            parameters follow from it and the images.
        lowest_loss: a lower bound of the loss of every sample, 0 for most losses.
        smooth_losses: for a loss with kinks, which stop the search for the optimum: convex and
            differentiable losses that are nowhere above it, each closer to it than the one before.
            They are minimised in turn.
        search_axes: optional, function from the training images (sample, height, width) as bytes to a
            matrix (axis, input) for rows of shape (class, input). The optimum is then searched in
            coordinates v with row = v·matrix, in which the loss should curve about equally in all
            directions. Linear models of `efhc_jax.models.linear` have it.

    Example:
        >>> Properties(convex=True, lowest_loss=0.0).has_minimiser
        False
    """

    convex: bool | None = None
    has_minimiser: bool = False
    in_words: str = ""
    score_gradient: GradientBounds | None = None
    lowest_loss: float = -math.inf
    smooth_losses: tuple[Loss, ...] = ()
    search_axes: Callable[[np.ndarray], np.ndarray] | None = None


NOTHING_KNOWN = Properties()
