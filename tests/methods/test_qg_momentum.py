"""Quasi-global momentum where there is no step, as at the end of a cosine schedule."""

import jax.numpy as jnp
import numpy as np

import efhc_jax as efhc
from efhc_jax.methods import METHODS
from efhc_jax.methods.qg_momentum import QGMomentum


def test_without_a_step_models_are_averaged_and_the_momentum_fades():
    """(W(k) − W(k+1))/α has no value at α = 0, and counts as 0."""
    weights, momentum = jnp.array([[1.0, 2.0], [3.0, 6.0]]), jnp.array([[1.0, -1.0], [0.5, 2.0]])
    turn = efhc.Turn(
        iteration=jnp.int32(5),
        weights=weights,
        last_broadcast=weights,
        fired=jnp.ones(2, bool),
        gradient=jnp.ones((2, 2)),
        training=jnp.ones(2, bool),
        learning_rate=jnp.zeros(()),
        trained=lambda x: x,
        hold=lambda x: x,
        mix=lambda x: jnp.broadcast_to(x.mean(0), x.shape),
        mix_all=lambda x: x,
        words=lambda positions: positions.astype(jnp.uint32),
    )
    found = METHODS["qg_momentum"].update(turn, QGMomentum(mu=0.25), momentum)
    np.testing.assert_allclose(found.weights, [[2.0, 4.0]] * 2)
    np.testing.assert_allclose(found.memory, 0.75 * momentum)
