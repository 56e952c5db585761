"""Any Flax NNX module as a model."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float, Key

from efhc_jax.models.base import Loss, Model
from efhc_jax.models.properties import NOTHING_KNOWN, Properties


def from_nnx(
    build: Callable[[nnx.Rngs], nnx.Module], loss: Loss, properties: Properties = NOTHING_KNOWN
) -> Model:
    """A model from a Flax NNX module that maps a batch of images to scores.

    Args:
        build: function that creates the module from its random streams, for example
            `lambda rngs: MyNetwork(rngs=rngs)`. All of its state must be `nnx.Param`.
        loss: function from scores (batch, class) and labels (batch,) to the loss of each sample.
        properties: what is known about the loss as a function of the parameters, for audits.

    Example:
        >>> import optax
        >>> class Tiny(nnx.Module):
        ...     def __init__(self, rngs):
        ...         self.dense = nnx.Linear(784, 10, rngs=rngs)
        ...     def __call__(self, images):
        ...         return self.dense(images.reshape(len(images), -1))
        >>> from_nnx(Tiny, optax.softmax_cross_entropy_with_integer_labels).size
        7850
    """
    template = nnx.eval_shape(lambda: build(nnx.Rngs(0)))
    graph, shapes, rest = nnx.split(template, nnx.Param, ...)  # type: ignore[misc]
    if jax.tree.leaves(rest):
        kinds = sorted({type(leaf).__name__ for leaf in jax.tree.leaves(rest, is_leaf=_is_variable)})
        raise TypeError(
            f"the module has state other than nnx.Param ({', '.join(kinds)}); "
            "a row holds only parameters, so leave out dropout and batch statistics"
        )
    leaves, structure = jax.tree.flatten(shapes)
    ends = np.cumsum([leaf.size for leaf in leaves])

    def init(key: Key[Array, ""]) -> Float[Array, "parameter"]:
        params = jax.tree.leaves(nnx.state(build(nnx.Rngs(key)), nnx.Param))
        return jnp.concatenate([leaf.ravel() for leaf in params]).astype(jnp.result_type(float))

    def logits(
        row: Float[Array, "parameter"], images: Float[Array, "batch height width"]
    ) -> Float[Array, "batch class"]:
        pieces = jnp.split(row, ends[:-1])
        params = [piece.reshape(leaf.shape) for piece, leaf in zip(pieces, leaves, strict=True)]
        return nnx.merge(graph, jax.tree.unflatten(structure, params), rest)(images)

    return Model(int(ends[-1]), init, logits, loss, properties=properties)


def _is_variable(node: object) -> bool:
    return isinstance(node, nnx.Variable)
