"""Properties that every split has, and what each one promises beyond them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from efhc_jax.data import SPLITS, Shards, split_data
from efhc_jax.data.splits import assign_labels
from efhc_jax.errors import ExperimentError

seeds = st.integers(0, 2**32 - 1)


def balanced_labels(samples: int, classes: int = 10) -> np.ndarray:
    """Labels as a dataset has them: mixed, about equally many of each."""
    rng = np.random.default_rng(samples)
    return rng.permutation(np.arange(samples, dtype=np.int32) % classes)


def owned(shards: Shards, device: int) -> np.ndarray:
    """The samples of one device."""
    return shards.pool[shards.start[device] :][: shards.count[device]]


def split(name: str, labels: np.ndarray, seed: int = 0, **given_settings: object) -> Shards:
    """Split with a fresh generator."""
    return split_data(name, labels, rng=np.random.default_rng(seed), **given_settings)  # type: ignore[arg-type]


# Every split


@pytest.mark.parametrize("name", SPLITS)
@settings(max_examples=40, deadline=None)
@given(seed=seeds, devices=st.integers(1, 12), per_device=st.integers(1, 10))
def test_every_split_is_disjoint_and_of_fixed_shape(
    name: str, seed: int, devices: int, per_device: int
) -> None:
    labels = balanced_labels(600)
    shards = split(
        name,
        labels,
        seed,
        devices=devices,
        labels_per_device=per_device,
        dirichlet_alpha=1.0,
        minimum=2,
    )
    assert shards.pool.dtype == shards.start.dtype == shards.count.dtype == np.int32
    assert shards.pool.shape == (600,)
    assert shards.start.shape == shards.count.shape == (devices,)
    np.testing.assert_array_equal(np.sort(shards.pool), np.arange(600))  # each sample once
    np.testing.assert_array_equal(shards.start, np.cumsum(shards.count) - shards.count)
    assert shards.start[-1] + shards.count[-1] <= 600
    assert shards.count.min() >= 2


@pytest.mark.parametrize("name", SPLITS)
def test_every_split_follows_from_the_seed(name: str) -> None:
    labels = balanced_labels(500)
    one, same, other = (split(name, labels, seed, devices=7) for seed in (3, 3, 4))
    for left, right in zip(one, same, strict=True):
        np.testing.assert_array_equal(left, right)
    assert not np.array_equal(one.pool, other.pool)


@pytest.mark.parametrize("name", SPLITS)
def test_every_split_refuses_to_starve_a_device(name: str) -> None:
    with pytest.raises(ExperimentError, match=r"batch_size=32.*fewer devices"):
        split(name, balanced_labels(100), devices=10, minimum=32)


@pytest.mark.parametrize("name", ["iid", "labels"])
def test_too_few_samples_are_counted_in_the_message(name: str) -> None:
    with pytest.raises(ExperimentError, match=r"batch_size=11: device \d of 10 has 10 samples"):
        split(name, balanced_labels(100), devices=10, minimum=11)
    assert split(name, balanced_labels(100), devices=10, minimum=10).count.tolist() == [10] * 10


def test_a_device_without_any_sample_is_refused() -> None:
    with pytest.raises(ExperimentError, match=r"device \d+ of 12 has 0 samples"):
        split("iid", balanced_labels(10), devices=12, minimum=0)


def test_an_unknown_split_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ExperimentError, match=r"split='random'.*labels, iid, dirichlet"):
        split("random", balanced_labels(10), devices=2)


def test_no_devices_are_refused() -> None:
    with pytest.raises(ExperimentError, match="devices=0: give a whole number"):
        split("iid", balanced_labels(10), devices=0)


# By labels


@settings(max_examples=200, deadline=None)
@given(seed=seeds, classes=st.integers(1, 12), devices=st.integers(1, 40), data=st.data())
def test_label_slots_are_distinct_and_evenly_spread(
    seed: int, classes: int, devices: int, data: st.DataObject
) -> None:
    per_device = data.draw(st.integers(1, classes))
    held = assign_labels(classes, devices, per_device, np.random.default_rng(seed))
    assert (held.sum(axis=1) == per_device).all()
    holders = held.sum(axis=0)
    assert holders.sum() == devices * per_device
    assert holders.max() - holders.min() <= 1


@settings(max_examples=60, deadline=None)
@given(seed=seeds, devices=st.integers(1, 25), per_device=st.integers(1, 10))
def test_devices_that_share_a_label_share_its_samples_out_evenly(
    seed: int, devices: int, per_device: int
) -> None:
    labels = balanced_labels(1000)
    shards = split("labels", labels, seed, devices=devices, labels_per_device=per_device)
    table = np.stack(
        [np.bincount(labels[owned(shards, device)], minlength=10) for device in range(devices)]
    )
    assert ((table > 0).sum(axis=1) == per_device).all()
    for column in table.T:
        parts = column[column > 0]
        if len(parts):
            assert parts.sum() == 100  # a label that anyone holds is used up
            assert parts.max() - parts.min() <= 1


def test_one_label_a_device_is_a_partition_by_label() -> None:
    labels = balanced_labels(300)
    shards = split("labels", labels, devices=10, labels_per_device=1)
    seen = [np.unique(labels[owned(shards, device)]).tolist() for device in range(10)]
    assert sorted(seen) == [[label] for label in range(10)]
    assert shards.count.tolist() == [30] * 10


def test_labels_that_nobody_holds_stand_at_the_end_of_the_pool() -> None:
    labels = balanced_labels(100)
    shards = split("labels", labels, devices=3, labels_per_device=2)
    assert shards.count.sum() == 60
    used, unused = set(labels[shards.pool[:60]]), set(labels[shards.pool[60:]])
    assert len(used) == 6
    assert len(unused) == 4
    assert not used & unused


def test_pairs_of_labels_differ_between_devices_and_seeds() -> None:
    pairs = {
        tuple(np.flatnonzero(row))
        for seed in range(30)
        for row in assign_labels(10, 10, 2, np.random.default_rng(seed))
    }
    assert len(pairs) == 45  # every pair of ten labels comes up


@pytest.mark.parametrize("per_device", [0, 12])
def test_an_impossible_number_of_labels_is_refused(per_device: int) -> None:
    with pytest.raises(
        ExperimentError,
        match=f"labels_per_device={per_device}: the dataset has 10 labels; give 1 to 10",
    ):
        split("labels", balanced_labels(100), devices=2, labels_per_device=per_device)


# iid


@settings(max_examples=50, deadline=None)
@given(seed=seeds, samples=st.integers(20, 500), devices=st.integers(1, 20))
def test_iid_parts_are_equal_and_use_every_sample(seed: int, samples: int, devices: int) -> None:
    shards = split("iid", balanced_labels(samples), seed, devices=devices)
    assert shards.count.sum() == samples
    assert shards.count.max() - shards.count.min() <= 1


def test_iid_parts_hold_every_label_about_equally() -> None:
    labels = balanced_labels(10_000)
    shards = split("iid", labels, devices=10)
    for device in range(10):
        counts = np.bincount(labels[owned(shards, device)], minlength=10)
        assert 60 < counts.min() <= counts.max() < 140  # 100 expected, four deviations of 10


# Dirichlet


@settings(max_examples=50, deadline=None)
@given(seed=seeds, alpha=st.floats(0.3, 1000), devices=st.integers(1, 10))
def test_dirichlet_uses_every_sample(seed: int, alpha: float, devices: int) -> None:
    labels = balanced_labels(1000)
    shards = split("dirichlet", labels, seed, devices=devices, dirichlet_alpha=alpha, minimum=5)
    assert shards.count.sum() == 1000
    assert shards.count.min() >= 5


def test_dirichlet_goes_from_uneven_to_even_with_alpha() -> None:
    labels = balanced_labels(10_000)

    def largest_label_share(alpha: float) -> float:
        shards = split("dirichlet", labels, devices=5, dirichlet_alpha=alpha)
        parts = [np.bincount(labels[owned(shards, device)], minlength=10) for device in range(5)]
        return float(np.mean([part.max() / part.sum() for part in parts]))

    shares = [largest_label_share(alpha) for alpha in (0.05, 1.0, 1e5)]
    assert shares[0] > 0.4 > shares[1] > 0.12 > shares[2] >= 0.1


def test_dirichlet_proportions_have_the_variance_of_the_distribution() -> None:
    labels = np.repeat(np.arange(400), 250)
    shards = split("dirichlet", labels, devices=4, dirichlet_alpha=0.5)
    shares = np.stack([np.bincount(labels[owned(shards, device)], minlength=400) for device in range(4)])
    # A symmetric Dirichlet over m with concentration a: variance (m - 1) / (m²(m·a + 1)).
    assert np.var(shares / 250) == pytest.approx(3 / (16 * 3), rel=0.1)


def test_dirichlet_that_cannot_feed_every_device_says_what_to_try() -> None:
    with pytest.raises(
        ExperimentError, match=r"dirichlet_alpha=0\.001.*larger dirichlet_alpha, fewer devices"
    ):
        split("dirichlet", balanced_labels(200), devices=50, dirichlet_alpha=0.001, minimum=1)


@pytest.mark.parametrize("alpha", [0.0, -1.0, float("nan"), float("inf")])
def test_dirichlet_refuses_what_is_no_concentration(alpha: float) -> None:
    with pytest.raises(ExperimentError, match=f"dirichlet_alpha={alpha}: give a number above 0"):
        split("dirichlet", balanced_labels(100), devices=2, dirichlet_alpha=alpha)
