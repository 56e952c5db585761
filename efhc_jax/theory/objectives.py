"""Assumptions 3 and 4: convex objectives with bounded gradients."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from efhc_jax.errors import ExperimentError
from efhc_jax.theory.findings import ROUNDING, UNKNOWN, Finding, blocks


class GradientBounds(NamedTuple):
    """Bounds of all gradients for any weights: L in the 2-norm and L∞ in the maximum norm."""

    two: float
    infinity: float


def convexity(model: str) -> Finding:
    """Assumption 3: every F_i is convex, and F has a minimiser.

    Hinge and cross-entropy losses are convex in the scores, which are linear in the weights of svm and
    logistic; the squared distance of quadratic is convex. F of svm is piecewise linear and that of
    quadratic is quadratic, and both are bounded below: they have a minimiser. F of logistic has none if
    its classes are separable, since larger weights are then always better.

    Example:
        >>> convexity("lenet5").verdict
        'does not hold'
    """
    name = "convexity (Assumption 3)"
    if model == "logistic":
        figure = "logistic is convex; it has a minimiser only if its classes overlap"
        return Finding(name, "holds", figure, None)
    if model in ("svm", "quadratic"):
        return Finding(name, "holds", f"{model} is convex and has a minimiser", None)
    if model == "lenet5":
        return Finding(name, "does not hold", "lenet5 is a neural network", None)
    return Finding(name, UNKNOWN, f"nothing is known about the model {model}", None)


def gradient_bounds(model: str, images: ArrayLike, classes: int) -> GradientBounds | None:
    """Bounds L and L∞ of all gradients of a linear model on these images.

    The gradient of one sample is an outer product u ⊗ z of the loss's gradient u by the scores and the
    input z = (x, 1), the 1 for the bias. So ‖g‖₂ = ‖u‖₂·‖z‖₂ and ‖g‖∞ = ‖u‖∞·‖z‖∞.

    - svm: with a ≤ C − 1 violated margins, u has a entries 1/C and one −a/C. Then
      ‖u‖₂ = √(a + a²)/C ≤ √((C−1)/C) and ‖u‖∞ = a/C ≤ (C−1)/C, reached when all are violated.
    - logistic: u = p − e_y with probabilities p. Then ‖u‖₂² = (1 − p_y)² + Σ_{c≠y} p_c², which is at
      most 2(1 − p_y)² ≤ 2, and ‖u‖∞ ≤ 1; approached when all of p is on one wrong class.

    Means of gradients have the same bounds: those of a mini-batch, of a device's data, and any convex
    combination of subgradients at a kink. For F_i as the paper's sum over D_i, multiply by the number
    of samples in D_i.

    Args:
        model: name of the model.
        images: the training images (sample, …): bytes as stored, or normalised numbers.
        classes: number of classes, C.

    Returns:
        The bounds, or None for other models, whose gradients grow without bound with the weights:
        w_y − x in quadratic, and in lenet5 those of a layer with the weights of the next.

    Example:
        >>> gradient_bounds("logistic", [[2.0, -2.0]], classes=10)
        GradientBounds(two=4.242640687119286, infinity=2.0)
    """
    if model == "svm":
        two, infinity = math.sqrt((classes - 1) / classes), (classes - 1) / classes
    elif model == "logistic":
        two, infinity = math.sqrt(2), 1.0
    else:
        return None
    images = np.asarray(images)
    longest = largest = 1.0  # the bias alone
    for part in blocks(len(images), images[:1].size):
        pixels = images[part].reshape(len(images[part]), -1)
        inputs = _normalised_bytes()[pixels] if images.dtype == np.uint8 else pixels.astype(float)
        longest = max(longest, float(np.sqrt((inputs**2).sum(1) + 1).max()))
        largest = max(largest, float(np.abs(inputs).max()))
    return GradientBounds(two * longest, infinity * largest)


def bounded_gradients(
    two_norms: ArrayLike, infinity_norms: ArrayLike, bounds: GradientBounds | None
) -> Finding:
    """Assumption 4: ‖∇F_i(w)‖₂ ≤ L and ‖∇F_i(w)‖∞ ≤ L∞, for every w.

    Args:
        two_norms: ‖g_i(k)‖₂ as recorded, of any shape.
        infinity_norms: ‖g_i(k)‖∞ as recorded.
        bounds: the result of `gradient_bounds`; None if there are no bounds for all weights.

    Returns:
        A finding whose value is the largest of both norms.

    Raises:
        ExperimentError: a gradient exceeds its bound, which therefore belongs to other images.

    Example:
        >>> bounded_gradients([1.0, 2.5], [0.5, 0.25], GradientBounds(3.0, 1.0)).figure
        '‖g‖₂ up to 2.5, L = 3; ‖g‖∞ up to 0.5, L∞ = 1'
    """
    name = "bounded gradients (Assumption 4)"
    seen = [float(np.max(np.asarray(norms, float))) for norms in (two_norms, infinity_norms)]
    if bounds is None:
        figure = f"‖g‖₂ up to {seen[0]:.4g}, ‖g‖∞ up to {seen[1]:.4g}; no bound is known for this model"
        return Finding(name, UNKNOWN, figure, seen)
    for norm, largest, bound in zip(("two_norms", "infinity_norms"), seen, bounds, strict=True):
        if largest > bound * (1 + ROUNDING):
            raise ExperimentError(
                f"{norm}: reach {largest:g}, but no gradient on these images is above {bound:g}; "
                "give the model and the images that the run trained on"
            )
    figure = (
        f"‖g‖₂ up to {seen[0]:.4g}, L = {bounds.two:.4g}; "
        f"‖g‖∞ up to {seen[1]:.4g}, L∞ = {bounds.infinity:.4g}"
    )
    return Finding(name, "holds", figure, seen)


def _normalised_bytes() -> np.ndarray:
    """The 256 values of a pixel after normalisation."""
    from efhc_jax.models.base import PIXEL_MEAN, PIXEL_STD

    return (np.arange(256) / 255 - PIXEL_MEAN) / PIXEL_STD
