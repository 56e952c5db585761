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
from efhc_jax.errors import ExperimentError
from efhc_jax.models.base import Model
from efhc_jax.theory import Optimum

_CLOSE_ENOUGH = 1e-5  # the search ends when F* is known to this precision
_MOST_ITERATIONS = 450  # of the solver
_SAMPLES_AT_ONCE = 1_000


def find_optimum(model: Model, data: Dataset, shards: Shards) -> Optimum:
    """Upper and lower bounds of F* for a convex model.

    The upper bound is F(ŵ) of the best model ŵ that L-BFGS found. The lower bound follows from
    convexity: F(w) ≥ F(ŵ) − ‖∇F(ŵ)‖·‖w − ŵ‖, and ‖w − ŵ‖ ≤ 3‖ŵ‖ for every w with at most twice the norm
    of ŵ. For a loss with kinks, such as the hinge loss of `svm`, the solver minimises smooth losses that
    are never above it; the same inequality for these bounds both. Nor is F* below the lowest loss that
    the model states.

    Linear models are optimised in coordinates in which the inputs have about the same variance in all
    directions. The norm of a model is then about that of its scores.

    Args:
        model: a model whose properties state that it is convex.
        data: the training data.
        shards: the samples of each device.

    Raises:
        ExperimentError: the model does not state that it is convex.
    """
    known = model.properties
    if not known.convex:
        raise ExperimentError(
            f"convex={known.convex}: only a convex model has an optimum to search for; if it is convex, "
            "give it properties=Properties(convex=True)"
        )
    easier = [model._replace(loss=loss) for loss in known.smooth_losses or (model.loss,)]
    with jax.enable_x64(True):
        samples = jnp.asarray(data.train_images), jnp.asarray(data.train_labels)
        objective = make_objective(*samples, shards, _SAMPLES_AT_ONCE)
        axes = None if known.search_axes is None else known.search_axes(data.train_images)
        point = np.zeros(jax.eval_shape(model.init, jax.random.key(0)).shape)
        best = Optimum(float(_loss(model, point, axes, objective)), known.lowest_loss)
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
    model: Model, start: np.ndarray, axes: np.ndarray | None, objective: Objective, iterations: int
) -> _Found:
    from scipy.optimize import minimize

    last = _Found(start, math.inf, math.inf)

    def function(flat: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal last
        point = flat.reshape(start.shape)
        value, gradient = jax.device_get(_loss_and_gradient(model, point, axes, objective))
        slack = 3 * np.linalg.norm(gradient) * np.linalg.norm(point)
        above = float(value) - model.properties.lowest_loss
        last = _Found(point, float(value), min(above, float(slack)))
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


@functools.partial(jax.jit, static_argnums=0)
def _loss(
    model: Model,
    point: Float[Array, "*parameters"],
    axes: Float[Array, "axis input"] | None,
    objective: Objective,
) -> Float[Array, ""]:
    return global_loss(model, _row(point, axes), objective)


@functools.partial(jax.jit, static_argnums=0)
def _loss_and_gradient(
    model: Model,
    point: Float[Array, "*parameters"],
    axes: Float[Array, "axis input"] | None,
    objective: Objective,
) -> tuple[Float[Array, ""], Float[Array, "*parameters"]]:
    value, gradient = global_loss_and_gradient(model, _row(point, axes), objective)
    return value, gradient if axes is None else gradient @ axes.T


def _row(
    point: Float[Array, "*parameters"], axes: Float[Array, "axis input"] | None
) -> Float[Array, "*parameters"]:
    return point if axes is None else point @ axes
