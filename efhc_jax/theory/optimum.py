"""The minimum F* of the global loss of a convex problem, computed with SciPy in 64 bits."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from efhc_jax.data import Dataset
from efhc_jax.data.splits import Shards
from efhc_jax.engine.objective import Objective, global_loss, global_loss_and_gradient, make_objective
from efhc_jax.models import make_model
from efhc_jax.models.base import Model, normalise
from efhc_jax.models.svm import smoothed_hinge
from efhc_jax.theory import Optimum

CONVEX = ("svm", "logistic", "quadratic")

_CLOSE_ENOUGH = 1e-5  # the search ends when F* is known to this precision
_MOST_ITERATIONS = 450  # of the solver
_SMOOTHINGS = (1.0, 0.1, 0.01)  # of the hinge loss, whose kinks would stop the solver
_RIDGE = 1e-6  # added to the variances of the inputs, relative to the largest
_SAMPLES_AT_ONCE = 1_000


def find_optimum(name: str, data: Dataset, shards: Shards) -> Optimum:
    """Upper and lower bounds of F* for a convex model.

    The upper bound is F(ŵ) of the best model ŵ that L-BFGS found. The lower bound follows from
    convexity: F(w) ≥ F(ŵ) − ‖∇F(ŵ)‖·‖w − ŵ‖, and ‖w − ŵ‖ ≤ 3‖ŵ‖ for every w with at most twice the norm
    of ŵ. The hinge loss has kinks, so for `svm` the solver minimises smooth losses that are never above
    it; the same inequality for these bounds both. No loss is negative, so neither is F*.

    Linear models are optimised in coordinates in which the inputs have about the same variance in all
    directions. The norm of a model is then about that of its scores.

    Args:
        name: name of the model, one of `CONVEX`.
        data: the training data.
        shards: the samples of each device.
    """
    model = make_model(name, data.image_shape, data.classes)
    easier = [model]
    if name == "svm":
        easier = [model._replace(loss=smoothed_hinge(width)) for width in _SMOOTHINGS]
    with jax.enable_x64(True):
        samples = jnp.asarray(data.train_images), jnp.asarray(data.train_labels)
        objective = make_objective(*samples, shards, _SAMPLES_AT_ONCE)
        inputs = math.prod(data.image_shape)
        axes = np.eye(inputs) if name == "quadratic" else _even_axes(data.train_images)
        point = np.zeros((data.classes, len(axes)))
        best = Optimum(float(_loss(model, point, axes, objective)), 0.0)
        for smooth in easier:
            found = _minimise(smooth, point, axes, objective, _MOST_ITERATIONS // len(easier))
            point = found.point
            value = float(_loss(model, point, axes, objective))
            best = Optimum(min(best.value, value), max(best.lowest, found.value - found.slack))
            if best.value - best.lowest <= _CLOSE_ENOUGH:
                break
    return best


class _Found(NamedTuple):
    point: np.ndarray
    value: float
    slack: float  # no point with up to twice the norm is lower by more than this


def _minimise(
    model: Model, start: np.ndarray, axes: np.ndarray, objective: Objective, iterations: int
) -> _Found:
    from scipy.optimize import minimize

    last = _Found(start, math.inf, math.inf)

    def function(flat: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal last
        point = flat.reshape(start.shape)
        value, gradient = jax.device_get(_loss_and_gradient(model, point, axes, objective))
        slack = 3 * np.linalg.norm(gradient) * np.linalg.norm(point)
        last = _Found(point, float(value), min(float(value), float(slack)))
        return last.value, gradient.ravel()

    def stop_when_close(point: np.ndarray) -> None:
        if last.slack <= _CLOSE_ENOUGH / 2:
            raise StopIteration

    found = minimize(
        function,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        callback=stop_when_close,
        options={"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 20, "ftol": 0, "gtol": 0},
    )
    function(found.x)  # the last evaluated point may not be the best
    return last


def _even_axes(images: np.ndarray) -> np.ndarray:
    """Coordinates in which the inputs of a linear model, including the bias, have equal variances."""
    seen = np.asarray(normalise(jnp.asarray(images)), np.float32).reshape(len(images), -1)
    inputs = np.concatenate([seen, np.ones((len(seen), 1), np.float32)], axis=1)
    strength, directions = np.linalg.eigh((inputs.T @ inputs / len(inputs)).astype(float))
    return (directions / np.sqrt(strength + _RIDGE * strength.max())) @ directions.T


@functools.partial(jax.jit, static_argnums=0)
def _loss(
    model: Model,
    point: Float[Array, "class axis"],
    axes: Float[Array, "axis input"],
    objective: Objective,
) -> Float[Array, ""]:
    return global_loss(model, point @ axes, objective)


@functools.partial(jax.jit, static_argnums=0)
def _loss_and_gradient(
    model: Model,
    point: Float[Array, "class axis"],
    axes: Float[Array, "axis input"],
    objective: Objective,
) -> tuple[Float[Array, ""], Float[Array, "class axis"]]:
    value, gradient = global_loss_and_gradient(model, point @ axes, objective)
    return value, gradient @ axes.T
