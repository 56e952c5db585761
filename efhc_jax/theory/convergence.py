"""Theorem 1: convergence of the models to their average, and of the average to the optimum."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from efhc_jax.errors import ExperimentError
from efhc_jax.theory.findings import ROUNDING, UNKNOWN, Curve, DecayFit, Finding

OPTIMALITY = "optimality gap F(w̄) − F* (Theorem 1b)"


class Optimum(NamedTuple):
    """Bounds of F*, the minimum of the global loss."""

    value: float  # loss of the best model found, an upper bound of F*
    lowest: float  # lower bound of F* over models with at most twice the norm


def decay_fit(iterations: ArrayLike, values: ArrayLike) -> DecayFit:
    """Fit of the decay of a curve: value ≈ C·k^(−s), by least squares in logarithms of its second half.

    Args:
        iterations: k (point,), increasing.
        values: (point,). Points without a logarithm are left out: k = 0, and values that are 0, negative
            or not finite.

    Returns:
        s, C and the first and last values; s and C are NaN if fewer than two points are left.

    Example:
        >>> round(decay_fit([0, 1, 4, 16, 64], [9.0, 8.0, 4.0, 2.0, 1.0]).exponent, 6)
        0.5
    """
    k, curve = np.asarray(iterations, float), np.asarray(values, float)
    if k.ndim != 1 or k.shape != curve.shape or not k.size:
        raise ExperimentError(
            f"values: have shape {curve.shape} for iterations of shape {k.shape}; give equal shapes"
        )
    half = slice(k.size // 2, None)
    usable = (k[half] > 0) & (curve[half] > 0) & np.isfinite(curve[half])
    slope = height = math.nan
    if usable.sum() >= 2:
        slope, height = np.polyfit(np.log(k[half][usable]), np.log(curve[half][usable]), 1)
    return DecayFit(-float(slope), math.exp(height), float(curve[0]), float(curve[-1]))


def consensus(iterations: ArrayLike, error: ArrayLike) -> Finding:
    """Theorem 1a: all models converge to their average.

    Args:
        iterations: k of each evaluation.
        error: ‖W − 1w̄ᵀ‖_F/√m at each.

    Returns:
        A finding whose value is the exponent s of the decay k^(−s).

    Example:
        >>> consensus([0, 10, 20, 40], [8.0, 4.0, 2.0, 1.0]).figure
        '8 at first, 1 at last, falling like k^-1.00'
    """
    curve = _curve(iterations, error)
    figure = _in_words(curve.fit)
    return Finding("consensus error (Theorem 1a)", UNKNOWN, figure, _exponent(curve), curve)


def optimality_gap(loss: ArrayLike, optimum: Optimum) -> np.ndarray:
    """F(w̄) − F* at each evaluation; NaN if it is smaller than the uncertainty of F*.

    Args:
        loss: F(w̄), computed in 32 bits.
        optimum: bounds of F*.

    Example:
        >>> optimality_gap([1.5, 1.0], Optimum(1.0, 0.99)).tolist()
        [0.5, nan]
    """
    loss = np.asarray(loss, float)
    gap = loss - optimum.value
    unsure = optimum.value - optimum.lowest + ROUNDING * np.abs(loss)
    return np.where(gap > unsure, gap, np.nan)


def optimality(iterations: ArrayLike, loss: ArrayLike, optimum: Optimum) -> Finding:
    """Theorem 1b: the global loss of the average model w̄ converges to its minimum F*.

    Args:
        iterations: k of each evaluation.
        loss: F(w̄) at each.
        optimum: bounds of F*.

    Returns:
        A finding whose value is the exponent s of the decay k^(−s).

    Example:
        >>> optimality([0, 10, 20, 40], [9.0, 5.0, 3.0, 2.0], Optimum(1.0, 1.0)).figure
        '8 at first, 1 at last, falling like k^-1.00; F* = 1, known to 0'
    """
    curve = _curve(iterations, optimality_gap(loss, optimum))
    known_to = optimum.value - optimum.lowest
    figure = f"{_in_words(curve.fit)}; F* = {optimum.value:.4g}, known to {known_to:.1g}"
    return Finding(OPTIMALITY, UNKNOWN, figure, _exponent(curve), curve)


def _curve(iterations: ArrayLike, values: ArrayLike) -> Curve:
    fit = decay_fit(iterations, values)
    return Curve(np.asarray(iterations), np.asarray(values, float), fit)


def _in_words(fit: DecayFit) -> str:
    ends = f"{_shown(fit.first)} at first, {_shown(fit.last)} at last, "
    if math.isnan(fit.exponent):
        return ends + "too few points for a fit"
    if fit.exponent <= 0:
        return ends + "not falling in its second half"
    return ends + f"falling like k^-{fit.exponent:.2f}"


def _shown(value: float) -> str:
    return "too small to tell" if math.isnan(value) else f"{value:.3g}"


def _exponent(curve: Curve) -> float | None:
    return None if math.isnan(curve.fit.exponent) else curve.fit.exponent
