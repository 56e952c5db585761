"""Shapes and types in signatures are checked while the tests run."""

import jax.numpy as jnp
import pytest
from jaxtyping import TypeCheckError

from efhc_jax.engine.deviation import normalised_distance
from efhc_jax.engine.mixing import mix


def test_a_wrong_shape_is_an_error():
    with pytest.raises(TypeCheckError, match="normalised_distance"):
        normalised_distance(jnp.zeros((3, 4)), jnp.zeros((2, 4)), 2.0)


def test_a_wrong_type_is_an_error():
    with pytest.raises(TypeCheckError, match="mix"):
        mix(jnp.zeros((3, 3)), jnp.zeros((3, 4), jnp.int32))
