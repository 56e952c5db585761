"""Validation of models that users register."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from efhc_jax.errors import ExperimentError
from efhc_jax.members import said_of_member
from efhc_jax.models.base import Model

_BATCH = 2


def check_model(name: str, model: Any, image_shape: tuple[int, int], classes: int) -> None:
    """Raise unless a model has a score per class and a loss per sample.

    Raises:
        ExperimentError: it has not; the message has its name and what to do.
    """
    source = f"model={name!r}"
    if not isinstance(model, Model):
        raise ExperimentError(
            f"{source}: its factory gives a {type(model).__name__}; return an efhc_jax.Model, of a "
            "Flax module with efhc_jax.from_nnx"
        )
    with said_of_member(source, "init"):
        row = jax.eval_shape(model.init, jax.random.key(0))
    if not hasattr(row, "size") or row.size != model.size:
        raise ExperimentError(f"{source}: init gives {row}, and size is {model.size}; make them agree")
    images = jax.ShapeDtypeStruct((_BATCH, *image_shape), jnp.result_type(float))
    with said_of_member(source, "logits"):
        scores = jax.eval_shape(model.logits, row, images)
    if getattr(scores, "shape", None) != (_BATCH, classes):
        raise ExperimentError(
            f"{source}: logits gives {getattr(scores, 'shape', scores)} for {_BATCH} images; return "
            f"a score per class of the data, {(_BATCH, classes)}"
        )
    with said_of_member(source, "loss"):
        losses = jax.eval_shape(model.loss, scores, jax.ShapeDtypeStruct((_BATCH,), jnp.int32))
    if getattr(losses, "shape", None) != (_BATCH,):
        raise ExperimentError(
            f"{source}: loss gives {getattr(losses, 'shape', losses)} for {_BATCH} samples; return one "
            f"number per sample, {(_BATCH,)}"
        )
