"""Runs that diverge: named with their method, the iteration, and what to try."""

import numpy as np
import pytest

import efhc_jax as efhc
from efhc_jax.runs.divergence import diverged_runs
from small import SMALL

WILD = SMALL.replace(
    model="quadratic", learning_rate=1e6, learning_rate_schedule="constant", iterations=60
)


@pytest.mark.parametrize(
    ("method", "tries"),
    [
        ("choco", " or a smaller method.gamma"),
        ("qg_momentum", " or a smaller method.beta"),
        ("tracking", ""),
    ],
)
def test_a_run_names_its_method_and_the_iteration(tiny, method, tries):
    with pytest.raises(efhc.DivergedError) as caught:
        efhc.simulate(WILD.replace(method=method), tiny)
    message, steps = str(caught.value), caught.value.result.sizes["step"]
    assert message.startswith(f"learning_rate=1e+06, method='{method}': the models of devices ")
    assert f"are not finite from iteration {steps + 1}; " in message
    assert message.endswith(f"try a learning_rate of 1 or less{tries}")


def test_a_run_of_gossip_has_no_parameter_to_lower(tiny):
    with pytest.raises(efhc.DivergedError) as caught:
        efhc.simulate(WILD, tiny)
    assert str(caught.value).startswith("learning_rate=1e+06: the models of devices ")
    assert str(caught.value).endswith("try a learning_rate of 1 or less")


def test_a_sweep_continues_and_says_which_methods_diverged(tiny):
    base = WILD.replace(learning_rate=0.01, iterations=20)
    axes = {"method": ["gossip", "choco"], "method.gamma": [0.1, 1.0], "seed": range(2)}
    grid = efhc.sweep(base.inherit({"method.ratio": 0.3}), tiny, **axes)
    assert diverged_runs(grid) == []
    assert np.isfinite(grid.accuracy).all()
    grid["diverged_at"].loc[{"method": "choco", "method.gamma": 1.0}] = [17, 12]
    assert diverged_runs(grid) == [
        "method='choco': 2 of 4 runs diverged, the first at iteration 12, and are not in the means; "
        "try a smaller learning_rate or a smaller method.gamma"
    ]
    chosen = grid.sel({"method": "choco", "method.gamma": 1.0})
    assert diverged_runs(chosen)[0].startswith("method='choco': 2 of 2 runs diverged")
    assert diverged_runs(grid.sel({"method": "gossip"})) == []


def test_a_sweep_without_methods_has_one_line(tiny):
    grid = efhc.sweep(WILD.replace(iterations=20), tiny, learning_rate=[0.01, 1e6])
    (line,) = diverged_runs(grid)
    first = int(grid.diverged_at[1])
    assert line == (
        f"1 of 2 runs diverged, the first at iteration {first}, and are not in the means; "
        "try a smaller learning_rate"
    )
