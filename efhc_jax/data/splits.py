"""Splits of the training samples among devices.

A split assigns an owner to each sample; `split_data` turns the owners into `Shards`, arrays of
fixed shapes that a compiled program can index. A new split is a function and an entry in `SPLITS`.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from efhc_jax.errors import ExperimentError
from efhc_jax.members import Registry, said_of_member

Labels = npt.NDArray[np.integer]
Owners = npt.NDArray[np.int32]

_NOBODY = -1
_MOST_DRAWS = 1_000


class Shards(NamedTuple):
    """The training samples of each of the m devices; no sample is owned twice.

    Device i owns `pool[start[i] : start[i] + count[i]]`. The pool contains all samples, with those
    that no device owns at its end, so that the shapes depend only on the dataset and m: runs that
    differ in the split share a compiled program.

    Attributes:
        pool: int32 (N,), sample indices grouped by device.
        start: int32 (m,), position of each device's first sample.
        count: int32 (m,), number of samples of each device.
    """

    pool: npt.NDArray[np.int32]
    start: npt.NDArray[np.int32]
    count: npt.NDArray[np.int32]  # type: ignore[assignment]  # hides tuple.count


class SplitSettings(NamedTuple):
    """Settings that all splits share; each uses some of them."""

    devices: int
    labels_per_device: int
    dirichlet_alpha: float
    minimum: int


Assign = Callable[..., Owners]


class Split(NamedTuple):
    """A rule that gives each sample to a device.

    A plain function of the labels, a generator and the settings can be registered instead.

    Attributes:
        assign: function from the labels, a random generator and the settings to the owner of each
            sample, or -1; with `parameters`, these are its fourth argument.
        parameters: frozen dataclass of its own parameters, or None.
        uses: the shared settings that it uses, of labels_per_device and dirichlet_alpha; None if
            unknown. Others are errors, because they would have no effect.
    """

    assign: Assign
    parameters: type | None = None
    uses: tuple[str, ...] | None = None


def split_data(
    name: str,
    labels: Labels,
    *,
    devices: int,
    labels_per_device: int = 1,
    dirichlet_alpha: float = 0.5,
    rng: np.random.Generator,
    minimum: int = 1,
    parameters: Any = None,
) -> Shards:
    """Split the training samples among the devices.

    Args:
        name: One of `SPLITS`: "labels", "iid" or "dirichlet".
        labels: (N,), the label of each training sample.
        devices: Number of devices, m.
        labels_per_device: For "labels", the number of labels per device.
        dirichlet_alpha: For "dirichlet", the concentration: small values are uneven, large ones even.
        rng: Random generator; the same state gives the same split.
        minimum: The smallest number of samples that a device needs: the batch size.
        parameters: The parameters of a split that has its own.

    Raises:
        ExperimentError: There is no such split, or the settings do not fit the data.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> shards = split_data("iid", np.array([0, 1, 0, 1, 1]), devices=2, rng=rng)
        >>> shards.start, shards.count
        (array([0, 3], dtype=int32), array([3, 2], dtype=int32))
    """
    if name not in SPLITS:
        raise ExperimentError(f"split={name!r}: no such split; choose one of: {', '.join(SPLITS)}")
    if devices < 1:
        raise ExperimentError(f"devices={devices}: give a whole number of 1 or more")
    settings = SplitSettings(devices, labels_per_device, dirichlet_alpha, minimum)
    entry = SPLITS[name]
    assign = entry.assign if isinstance(entry, Split) else entry
    own = () if parameters is None else (parameters,)
    with said_of_member(f"split={name!r}", "its function"):
        assigned = assign(labels, rng, settings, *own)
    owners = _checked_owners(name, assigned, len(labels), devices)
    shards = _group_by_owner(owners, devices)
    _check_enough_samples(name, shards, minimum)
    return shards


def split_by_labels(labels: Labels, rng: np.random.Generator, settings: SplitSettings) -> Owners:
    """A few labels per device: the paper's non-iid setting.

    With L labels per device, the m·L (device, label) slots are distributed over the labels as evenly
    as possible. The samples of a label are divided evenly among its devices, and none is given
    twice. Labels without a device (if m·L is less than the number of labels) are not used.
    """
    present = np.unique(labels)
    if not 1 <= settings.labels_per_device <= len(present):
        raise ExperimentError(
            f"labels_per_device={settings.labels_per_device}: "
            f"the dataset has {len(present)} labels; give 1 to {len(present)}"
        )
    held = assign_labels(len(present), settings.devices, settings.labels_per_device, rng)
    owners = np.full(len(labels), _NOBODY, np.int32)
    for label, is_held in zip(present, held.T, strict=True):
        holders = np.flatnonzero(is_held)
        if len(holders):
            samples = np.flatnonzero(labels == label)
            owners[rng.permutation(samples)] = _share_out(len(samples), holders)
    return owners


def split_iid(labels: Labels, rng: np.random.Generator, settings: SplitSettings) -> Owners:
    """Shuffled samples in equal parts, to within one sample."""
    return rng.permutation(_share_out(len(labels), np.arange(settings.devices)))


def split_dirichlet(labels: Labels, rng: np.random.Generator, settings: SplitSettings) -> Owners:
    """Samples of each label in proportions drawn from a Dirichlet distribution over devices.

    It interpolates between one label per device (alpha near 0) and iid (alpha large); see Hsu et
    al., arXiv 1909.06335. It is redrawn until each device has enough samples for a mini-batch.
    """
    alpha = settings.dirichlet_alpha
    if not (alpha > 0 and math.isfinite(alpha)):
        raise ExperimentError(f"dirichlet_alpha={alpha}: give a number above 0, such as 0.5")
    present, sizes = np.unique(labels, return_counts=True)
    counts = _draw_dirichlet_counts(sizes, rng, settings)
    owners = np.full(len(labels), _NOBODY, np.int32)
    for label, count in zip(present, counts, strict=True):
        samples = rng.permutation(np.flatnonzero(labels == label))
        owners[samples] = np.repeat(np.arange(settings.devices), count)
    return owners


SPLITS: Registry[Split | Assign] = Registry(
    {
        "labels": Split(split_by_labels, uses=("labels_per_device",)),
        "iid": Split(split_iid, uses=()),
        "dirichlet": Split(split_dirichlet, uses=("dirichlet_alpha",)),
    }
)


def assign_labels(
    label_count: int, devices: int, labels_per_device: int, rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """The labels of each device: boolean (devices, label_count).

    One device after the other takes the labels with the fewest devices so far, ties broken at random.
    A device's labels are therefore distinct, and the numbers of devices per label differ by at most 1.
    """
    held = np.zeros((devices, label_count), bool)
    holders = np.zeros(label_count, int)
    for device in range(devices):
        least_held_first = np.lexsort((rng.random(label_count), holders))
        chosen = least_held_first[:labels_per_device]
        held[device, chosen] = True
        holders[chosen] += 1
    return held


def _share_out(samples: int, holders: npt.NDArray[np.integer]) -> Owners:
    """An owner for each of `samples` positions, with equal parts to within one sample."""
    return holders[np.arange(samples) % len(holders)].astype(np.int32)


def _draw_dirichlet_counts(
    sizes: npt.NDArray[np.integer], rng: np.random.Generator, settings: SplitSettings
) -> npt.NDArray[np.int64]:
    """The number of samples per label and device: (labels, devices); rows sum to `sizes`."""
    devices, minimum = settings.devices, settings.minimum
    concentration = np.full(devices, settings.dirichlet_alpha)
    for _ in range(_MOST_DRAWS):
        proportions = rng.dirichlet(concentration, size=len(sizes))
        bounds = np.rint(np.cumsum(proportions, axis=1) * sizes[:, None]).astype(np.int64)
        bounds[:, -1] = sizes  # without the rounding error of the last sum
        counts = np.diff(bounds, axis=1, prepend=0)
        if counts.sum(axis=0).min() >= minimum:
            return counts
    raise ExperimentError(
        f"dirichlet_alpha={settings.dirichlet_alpha}: no split of {sizes.sum():,} samples in "
        f"{_MOST_DRAWS:,} draws gave each of {devices} devices the batch_size={minimum} samples "
        f"it needs; try a larger dirichlet_alpha, fewer devices or a smaller batch_size"
    )


def _checked_owners(name: str, owners: Any, samples: int, devices: int) -> Owners:
    """Raise unless there is one owner per sample, a device or -1."""
    found = np.asarray(owners)
    if found.shape != (samples,) or not np.issubdtype(found.dtype, np.integer):
        raise ExperimentError(
            f"split={name!r}: gives {found.dtype} {found.shape}; return the owner of each sample, "
            f"integers ({samples},)"
        )
    outside = found[(found < _NOBODY) | (found >= devices)]
    if outside.size:
        raise ExperimentError(
            f"split={name!r}: gives a sample to device {outside[0]}; the {devices} devices are 0 to "
            f"{devices - 1}, and {_NOBODY} stands for nobody"
        )
    return found.astype(np.int32)


def _group_by_owner(owners: Owners, devices: int) -> Shards:
    """Samples sorted by owner, then by index; those without an owner last."""
    rank = np.where(owners == _NOBODY, devices, owners)
    pool = np.argsort(rank, kind="stable").astype(np.int32)
    count = np.bincount(rank, minlength=devices + 1)[:devices].astype(np.int32)
    start = (np.cumsum(count) - count).astype(np.int32)
    return Shards(pool, start, count)


def _check_enough_samples(name: str, shards: Shards, minimum: int) -> None:
    poorest = int(np.argmin(shards.count))
    count = int(shards.count[poorest])
    if count < max(minimum, 1):
        raise ExperimentError(
            f"batch_size={minimum}: device {poorest} of {len(shards.count)} has {count} samples "
            f"under split={name!r}; try a smaller batch_size, fewer devices or a larger dataset"
        )
