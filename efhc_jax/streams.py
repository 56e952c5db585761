"""Separate streams of randomness, so that changing one choice leaves the others as they were.

Two runs with one seed share their graph, split, initial models and mini-batches whatever else
differs between them: that is what makes comparisons paired.
"""

from __future__ import annotations

import enum

import numpy as np


class Stream(enum.IntEnum):
    """What the randomness is for. The numbers are part of what a seed means: never reuse one."""

    GRAPH = 0
    SPLIT = 1
    MODELS = 2
    BATCHES = 3
    POLICY = 4
    BANDWIDTH = 5
    NETWORK = 6


def host_stream(seed: int, stream: Stream) -> np.random.Generator:
    """The generator for what is drawn once a run, before it is compiled."""
    return np.random.Generator(np.random.PCG64([seed, int(stream)]))
