"""Assumptions 3 and 4: convex objectives with bounded gradients."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from efhc_jax.errors import ExperimentError
from efhc_jax.models.properties import GradientBounds, Properties
from efhc_jax.theory.findings import ROUNDING, UNKNOWN, Finding, blocks


def convexity(model: str, properties: Properties) -> Finding:
    """Assumption 3: every F_i is convex, and F has a minimiser.

    The verdict is on convexity. Whether F has a minimiser may depend on the data, as for `logistic`; the
    figure then says so.

    Args:
        model: name of the model.
        properties: what the model states about its loss, `Model.properties`.

    Example:
        >>> convexity("mine", Properties(convex=True, has_minimiser=True)).figure
        'mine is convex and has a minimiser'
        >>> convexity("mine", Properties()).verdict
        'cannot be known from a finite run'
    """
    name = "convexity (Assumption 3)"
    if properties.convex is None:
        return Finding(name, UNKNOWN, f"nothing is known about the model {model}", None)
    if not properties.convex:
        return Finding(name, "does not hold", f"{model} {properties.in_words or 'is not convex'}", None)
    minimiser = " and has a minimiser" if properties.has_minimiser else "; it may have no minimiser"
    return Finding(name, "holds", f"{model} {properties.in_words or 'is convex' + minimiser}", None)


def gradient_bounds(properties: Properties, images: ArrayLike) -> GradientBounds | None:
    """Bounds L and L∞ of all gradients of a linear model on these images.

    The gradient of one sample is an outer product u ⊗ z of the loss's gradient u by the scores, whose
    bounds the model states, and the input z = (x, 1), the 1 for the bias. So ‖g‖₂ = ‖u‖₂·‖z‖₂ and
    ‖g‖∞ = ‖u‖∞·‖z‖∞.

    Means of gradients have the same bounds: those of a mini-batch, of a device's data, and any convex
    combination of subgradients at a kink. For F_i as the paper's sum over D_i, multiply by the number
    of samples in D_i.

    Args:
        properties: what the model states about its loss, `Model.properties`.
        images: the training images (sample, …): bytes as stored, or normalised numbers.

    Returns:
        The bounds, or None for a model that states none, such as those whose gradients grow without
        bound with the weights.

    Example:
        >>> from efhc_jax.models import make_model
        >>> gradient_bounds(make_model("logistic", (1, 2), 10).properties, [[2.0, -2.0]])
        GradientBounds(two=4.242640687119286, infinity=2.0)
    """
    if properties.score_gradient is None:
        return None
    two, infinity = properties.score_gradient
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
