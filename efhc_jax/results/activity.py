"""Broadcasts and links in use in every iteration of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from efhc_jax.network.connectivity import links_in_use
from efhc_jax.results.datasets import policy_of
from efhc_jax.results.selection import setting_of

if TYPE_CHECKING:
    import xarray


class Activity(NamedTuple):
    """Broadcasts and links of a run; boolean arrays, except for the links themselves."""

    links: np.ndarray  # int (link, 2), every pair of devices that was ever linked
    fired: np.ndarray  # (step, device)
    up: np.ndarray  # (step, link), whether the link was up
    used: np.ndarray  # (step, link), whether it carried parameters


def activity_of(run: xarray.Dataset) -> Activity | None:
    """The activity of one run, or None if it was not recorded (`audit=True`, or `--audit`)."""
    if "fired" not in run or "adjacency" not in run:
        return None
    fired, adjacency = run.fired.values.astype(bool), run.adjacency.values.astype(bool)
    links = np.argwhere(np.triu(adjacency.any(0)))
    used = recorded_links(run)
    one, other = links.T
    return Activity(links, fired, adjacency[:, one, other], used[:, one, other])


def recorded_links(run: xarray.Dataset) -> np.ndarray:
    """The links that carried parameters (step, device, device) in a run recorded for an audit.

    Earlier versions did not record them; they follow from the broadcasts, because there was only gossip.
    """
    if "used_links" in run:
        return np.asarray(run.used_links.values, bool)
    adjacency = run.adjacency.values.astype(bool)
    return links_in_use(policy_of(run), run.fired.values.astype(bool), adjacency)


def one_run(grid: xarray.Dataset, choice: Mapping[str, int]) -> xarray.Dataset:
    """One run of a sweep, without the padding of shorter runs.

    Args:
        grid: a sweep, or a run.
        choice: an index along each axis.
    """
    run = grid.isel(choice)
    if "axes" not in grid.attrs:
        return run
    devices = int(run.bandwidth.notnull().sum())
    steps = int(run.transmission_time.notnull().sum())
    evaluations = int(run.accuracy.isel(device=0).notnull().sum())
    kept = {"device": devices, "step": steps, "evaluation": evaluations, "neighbor": devices}
    run = run.isel({name: slice(size) for name, size in kept.items() if name in run.dims})
    run.attrs = {name: value for name, value in run.attrs.items() if name != "axes"}
    return run.assign_attrs(experiment=setting_of(run).to_json())


def weak_devices(run: xarray.Dataset) -> np.ndarray:
    """Whether each device has less than the mean bandwidth."""
    bandwidth = run.bandwidth.values
    return np.asarray(bandwidth < bandwidth.mean() * (1 - 1e-6))
