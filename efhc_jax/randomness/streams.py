"""Separate random streams, so that changing one setting does not change the others' draws.

Runs with the same seed share their graph, split, initial models and mini-batches whatever else differs,
which makes comparisons paired.
"""

from __future__ import annotations

import enum

import numpy as np


class Stream(enum.IntEnum):
    """Purpose of a random stream. Results depend on the numbers: never reuse one."""

    GRAPH = 0
    SPLIT = 1
    MODELS = 2
    BATCHES = 3
    POLICY = 4
    BANDWIDTH = 5
    NETWORK = 6
    PARTICIPATION = 7
    COMPRESSION = 8


def host_stream(seed: int, stream: Stream) -> np.random.Generator:
    """The generator for what is drawn once per run, before compilation."""
    return np.random.Generator(np.random.PCG64([seed, int(stream)]))
