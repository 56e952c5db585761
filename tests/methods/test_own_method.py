"""The method of the example, against arithmetic of its own."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import efhc_jax as efhc
from small import SMALL

EXAMPLE = Path(__file__).parents[2] / "examples" / "add_method.py"


@pytest.mark.parametrize("step", [0.5, 1.2])
def test_it_moves_models_towards_the_average_of_the_neighbors(tiny, step):
    """W(1) = X + step·(P·X − X), where X = W(0) + Δ(0) is W(1) of a run whose step is 0."""
    runpy.run_path(str(EXAMPLE), run_name="members")
    base = SMALL.replace(method="over_relaxed", policy="zt")
    run = efhc.simulate(base.replace(**{"method.step": step}), tiny, trace=True)
    alone = efhc.simulate(base.replace(**{"method.step": 0.0}), tiny, trace=True)
    trained, start = alone.weights.values[1], run.weights.values[0]
    np.testing.assert_array_equal(start, alone.weights.values[0])
    transition = np.asarray(efhc.transition_matrix(run.adjacency.values[0], run.used_links.values[0]))
    expected = trained + step * (transition @ trained - trained)
    np.testing.assert_allclose(run.weights.values[1], expected, rtol=1e-5, atol=1e-5)


def test_a_step_of_one_is_averaging_after_training(tiny):
    runpy.run_path(str(EXAMPLE), run_name="members")
    base = SMALL.replace(policy="zt")
    mine = efhc.simulate(base.replace(method="over_relaxed"), tiny)
    copies = efhc.simulate(base.replace(method="copies"), tiny)
    np.testing.assert_allclose(mine.test_loss, copies.test_loss, rtol=1e-4)
    assert mine.messages.equals(copies.messages)
