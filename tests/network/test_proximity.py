"""Neighbours found by cells are those found among all pairs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from efhc_jax.network.geometry import within
from efhc_jax.network.proximity import among, near_lists, neighbor_capacity

DEVICES = 60
lists_within = jax.jit(near_lists, static_argnames="slots")


def as_sets(lists):
    return [{int(other) for other in row if other < DEVICES} for row in np.asarray(lists)]


@given(
    st.sampled_from([0.02, 0.1, 0.2, 0.25, 1 / 3, 0.5, 0.99, 1.5]),
    st.sampled_from([1.0, 0.3, 0.0]),
    st.integers(0, 2**32 - 1),
)
def test_nobody_near_is_missed(radius, spread, seed):
    """Over the whole square, in a crowd, and all in one place; with some in the corners."""
    rng = np.random.default_rng(seed)
    places = (rng.random(2) + spread * (rng.random((DEVICES, 2)) - 0.5)).clip(0, 1).astype(np.float32)
    places[:4] = [[0, 0], [0, 1], [1, 0], [1, 1]]
    lists, missed = lists_within(jnp.asarray(places), jnp.float32(radius), slots=DEVICES)
    assert int(missed) == 0
    assert (np.diff(np.asarray(lists), axis=1) >= 0).all()
    expected = within(places, np.float32(radius))
    assert as_sets(lists) == [set(np.flatnonzero(row)) for row in expected]


def test_those_for_whom_there_is_no_room_are_counted():
    places = jnp.full((DEVICES, 2), 0.5)
    _, missed = lists_within(places, jnp.float32(0.1), slots=8)
    assert int(missed) >= DEVICES * (DEVICES - 1 - 8)
    apart = jnp.asarray(np.linspace(0, 1, 2 * DEVICES).reshape(DEVICES, 2))
    _, missed = lists_within(apart, jnp.float32(0.01), slots=8)
    assert int(missed) == 0


def test_entries_of_another_list():
    lists, others = jnp.array([[1, 4, 9], [0, 9, 9]]), jnp.array([[4, 5, 6], [9, 9, 9]])
    assert among(lists, others).tolist() == [[False, True, False], [False, True, True]]


@pytest.mark.parametrize("devices", [500, 5000])
def test_there_is_room_for_a_waypoint_crowd(devices):
    """Places as dense as they get: the middle of the square, where waypoint devices gather."""
    radius = float(np.sqrt(15 / (np.pi * devices)))
    room = neighbor_capacity(devices, radius)
    rng = np.random.default_rng(0)
    places = rng.beta(2, 2, (devices, 2))  # 36·x(1−x)·y(1−y)
    lists, missed = near_lists(jnp.asarray(places), jnp.float32(radius), room)
    degree = (np.asarray(lists) < devices).sum(1)
    assert int(missed) == 0
    assert degree.max() < room < 4 * degree.max()
