"""Cross-entropy of scores with labels."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def cross_entropy(
    logits: Float[Array, "batch class"], labels: Int[Array, "batch"]
) -> Float[Array, "batch"]:
    """−log softmax(s)_y = log Σ_c exp(s_c) − s_y.

    The score of the label is selected by comparison, because the gradient of an index is a scatter,
    which compilers do not fuse.

    Example:
        >>> cross_entropy(jnp.array([[2.0, 2.0]]), jnp.array([0])).tolist()
        [0.6931471824645996]
    """
    relative = logits - jax.lax.stop_gradient(jnp.max(logits, axis=-1, keepdims=True))
    is_label = labels[:, None] == jnp.arange(logits.shape[-1])
    score = jnp.sum(jnp.where(is_label, relative, 0), axis=-1)
    return jnp.log(jnp.sum(jnp.exp(relative), axis=-1)) - score
