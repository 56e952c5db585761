"""Distributions of probabilities on [0, 1], by their quantiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from efhc_jax.errors import ExperimentError
from efhc_jax.members import Limit, shown

_EXTREME = 1e3  # beyond, quantiles of the beta distribution lose digits


class Distribution(NamedTuple):
    """A distribution with two parameters.

    Attributes:
        quantile: function from levels in (0, 1) and the parameters to quantiles in [0, 1].
        a: range of the first parameter, or None if it has none.
        b: range of the second.
    """

    quantile: Callable[[np.ndarray, float, float], np.ndarray]
    a: Limit | None = None
    b: Limit | None = None


def one(levels: np.ndarray, a: float, b: float) -> np.ndarray:
    """Always 1."""
    return np.ones_like(levels)


def beta(levels: np.ndarray, a: float, b: float) -> np.ndarray:
    """The beta distribution with density in proportion to p^(a − 1)·(1 − p)^(b − 1)."""
    from scipy.special import betaincinv

    return betaincinv(a, b, levels)


def normal(levels: np.ndarray, a: float, b: float) -> np.ndarray:
    """The normal distribution with mean a and standard deviation b, truncated to [0, 1]."""
    from scipy.special import ndtr, ndtri

    low, high = ndtr((0 - a) / b), ndtr((1 - a) / b)
    return a + b * ndtri(low + levels * (high - low))


def two(levels: np.ndarray, a: float, b: float) -> np.ndarray:
    """One of two values, with equal chance."""
    return np.where(levels < 0.5, a, b)


_UNIT, _SHAPE = Limit(float, 0, 1), Limit(float, 1 / _EXTREME, _EXTREME)

DISTRIBUTIONS = {
    "one": Distribution(one),
    "beta": Distribution(beta, _SHAPE, _SHAPE),
    "normal": Distribution(normal, _UNIT, Limit(float, 1 / _EXTREME, _EXTREME)),
    "two": Distribution(two, _UNIT, _UNIT),
}


def quantiles(name: str, a: float, b: float, levels: np.ndarray) -> np.ndarray:
    """The quantiles of a distribution by name, in [0, 1]."""
    return np.clip(DISTRIBUTIONS[name].quantile(levels, a, b), 0, 1)


def check_distribution(source: str, name: str, a: float, b: float) -> None:
    """Raise unless there is such a distribution, with these parameters.

    Args:
        source: the full name of the parameter that names it, such as `participation.links`; those of its
            parameters are `participation.links_a` and `participation.links_b`.
        name: its name.
        a: the first parameter.
        b: the second parameter.

    Raises:
        ExperimentError: there is none; the message has what to give.
    """
    if name not in DISTRIBUTIONS:
        raise ExperimentError(f"{source}={shown(name)}: give one of {', '.join(DISTRIBUTIONS)}")
    found = DISTRIBUTIONS[name]
    for letter, limit, value in (("a", found.a, a), ("b", found.b, b)):
        if limit is not None:
            try:
                limit.check(f"{source}_{letter}", value)
            except ExperimentError as error:
                raise ExperimentError(f"{error}, for {source}={name!r}") from None
