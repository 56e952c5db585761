"""Splits of the user's own, with parameters; what is wrong is said with their name."""

from dataclasses import dataclass

import numpy as np
import pytest

import efhc_jax as efhc
from efhc_jax.engine.program import advance
from efhc_jax.runs.prepare import split_of
from small import SMALL


@dataclass(frozen=True)
class Uneven:
    share: float = efhc.parameter(0.5, "Share of the samples on device 0.", low=0, high=1)


def uneven(labels, rng, settings, parameters):
    """Some samples on device 0, the others in turn."""
    others = 1 + np.arange(len(labels)) % (settings.devices - 1)
    return np.where(np.arange(len(labels)) < parameters.share * len(labels), 0, others)


def test_its_parameter_is_an_axis_in_one_compilation(tiny, monkeypatch):
    monkeypatch.setitem(efhc.SPLITS, "uneven", efhc.Split(uneven, Uneven, uses=()))
    base = SMALL.replace(split="uneven")
    for share, count in ((0.25, 10), (0.5, 20)):
        assert split_of(base.replace(**{"split.share": share}), tiny).count[0] == count
    efhc.simulate(SMALL, tiny)
    before = advance._cache_size()
    alone = efhc.simulate(base.replace(split=Uneven(share=0.25)), tiny)
    assert advance._cache_size() == before, "it is used before the program"
    grid = efhc.sweep(base, tiny, **{"split.share": [0.25, 0.5]})
    np.testing.assert_allclose(grid.train_loss.sel({"split.share": 0.25}), alone.train_loss, rtol=1e-5)
    with pytest.raises(efhc.ExperimentError, match="labels_per_device=2: has no effect with split='une"):
        base.replace(labels_per_device=2)


@pytest.mark.parametrize(
    ("split", "said"),
    [
        (lambda labels, rng, settings: labels[:-1], r"gives int32 \(39,\); return the owner of each"),
        (lambda labels, rng, settings: labels * 0.5, "gives float64 \\(40,\\); return the owner"),
        (
            lambda labels, rng, settings: labels + 3,
            "gives a sample to device 5; the 5 devices are 0 to 4",
        ),
        (lambda labels, rng, settings: labels - 2, "gives a sample to device -2"),
    ],
)
def test_a_mistake_is_said_with_the_name_of_the_split(tiny, monkeypatch, split, said):
    monkeypatch.setitem(efhc.SPLITS, "mine", split)
    with pytest.raises(efhc.ExperimentError, match=f"split='mine': {said}"):
        efhc.simulate(SMALL.replace(split="mine"), tiny)
