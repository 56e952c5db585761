"""Bandwidths keep their mean and nest; transmission time is what the loops of the oracle say."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from efhc_jax.experiment.experiment import Experiment
from efhc_jax.resources.bandwidth import bandwidths, transmission_time, upload_time


def drawn(e, seed):
    rng = np.random.default_rng(seed)
    return bandwidths(e.devices, e.weak_devices, e.weak_bandwidth, e.strong_bandwidth, rng)


@given(st.integers(1, 40), st.floats(0, 0.95), st.integers(0, 1000))
def test_bandwidths_are_those_of_the_oracle(devices, heterogeneity, seed):
    weak = int(np.floor(heterogeneity * devices + 0.5))
    if weak == devices:
        return
    ours = drawn(Experiment(devices=devices, weak_fraction=heterogeneity), seed)
    np.testing.assert_allclose(np.sort(ours), oracle.bandwidths(devices, heterogeneity))
    assert ours.mean() == pytest.approx(5000)


def test_weak_devices_nest_in_heterogeneity():
    weak = [
        set(np.flatnonzero(drawn(Experiment(weak_fraction=h), seed=3) == 1000)) for h in (0.2, 0.5, 0.8)
    ]
    assert weak[0] < weak[1] < weak[2]


@given(st.integers(1, 12), st.integers(0, 1000))
def test_transmission_time_agrees_with_the_oracle(devices, seed):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((devices, devices)) < 0.5, 1)
    adjacency = upper | upper.T
    used = adjacency & (lambda u: u | u.T)(np.triu(rng.random((devices, devices)) < 0.5, 1))
    bandwidth = rng.uniform(500, 9000, devices)
    ours = transmission_time(*map(jnp.asarray, (used, adjacency, bandwidth)), 7850)
    expected = oracle.transmission_time(used, adjacency, bandwidth, 7850)
    np.testing.assert_allclose(ours, expected, rtol=1e-5)


def test_by_hand():
    adjacency = jnp.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]], bool)
    used = jnp.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]], bool)
    bandwidth = jnp.array([1000.0, 2000.0, 4000.0])
    # Device 0 uses one link of two, device 1 its only one, device 2 none.
    expected = (0.5 * 100 / 1000 + 1 * 100 / 2000 + 0) / 3
    assert float(transmission_time(used, adjacency, bandwidth, 100)) == pytest.approx(expected)
    uploads = (100 / 1000 + 100 / 2000 + 100 / 4000) / 3
    assert float(upload_time(bandwidth, 100)) == pytest.approx(uploads)
