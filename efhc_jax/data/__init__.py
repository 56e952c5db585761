"""Datasets and their split among devices, in NumPy on the host."""

from efhc_jax.data.dataset import Dataset, check_dataset
from efhc_jax.data.sources import (
    ADD_YOUR_OWN,
    DATASETS,
    Availability,
    Source,
    available_datasets,
    check_own,
    fetch,
    load_dataset,
)
from efhc_jax.data.splits import SPLITS, Shards, split_data

__all__ = [
    "ADD_YOUR_OWN",
    "DATASETS",
    "SPLITS",
    "Availability",
    "Dataset",
    "Shards",
    "Source",
    "available_datasets",
    "check_dataset",
    "check_own",
    "fetch",
    "load_dataset",
    "split_data",
]
