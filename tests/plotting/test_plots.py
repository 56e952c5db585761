"""Figures from a few words: every word has an effect, or is refused."""

import numpy as np
import pytest

import efhc_jax as efhc
from efhc_jax.cli import main
from small import SMALL


@pytest.fixture(scope="module")
def grid(tiny):
    base = SMALL.replace(budgets=(0.02,))
    return efhc.sweep(base, tiny, policy=["efhc", "zt"], r=[40.0, 4000.0], seed=range(2))


@pytest.fixture(scope="module")
def run(tiny):
    return efhc.simulate(SMALL, tiny)


def test_a_variable_of_evaluations_over_time(grid):
    figure = efhc.plot(grid, y="consensus_error", select={"r": 40})
    by_iteration, by_time = figure.axes
    assert by_iteration.get_ylabel() == "consensus error"
    expected = grid.consensus_error.sel(r=40.0, policy="zt").mean("seed")
    (line,) = [line for line in by_iteration.lines if line.get_label() == "ZT"]
    np.testing.assert_allclose(line.get_ydata(), expected)
    assert by_time.get_xlabel() == "cumulative transmission time"


def test_a_variable_of_iterations_over_time(run):
    (axes,) = efhc.plot(run, y="train_loss").axes
    (line,) = axes.lines
    np.testing.assert_allclose(line.get_ydata(), run.train_loss)
    assert axes.get_ylabel() == "training loss"


def test_a_variable_without_devices_has_no_band(run):
    by_iteration, _ = efhc.plot(run, y="mean_model_accuracy").axes
    assert not by_iteration.collections
    np.testing.assert_allclose(by_iteration.lines[0].get_ydata(), 100 * run.mean_model_accuracy)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"y": "acuracy"}, "acuracy: not in the results; choose from accuracy"),
        ({"y": "bandwidth"}, "y=bandwidth: is not a time series; choose from"),
        ({"budget": 0.02}, "budget=0.02: one moment of the runs is drawn against an axis of the sweep"),
        ({"iteration": 10}, "iteration=10: one moment of the runs"),
        ({"rows": "r"}, "rows=r: a heat map is drawn against an axis"),
        ({"lead": "efhc"}, "lead=efhc: a heat map"),
        ({"x": "r", "lead": "efhc"}, "lead=efhc: is drawn as a heat map; give rows"),
        ({"x": "r", "rows": "seed", "lead": "efhc", "hue": "policy"}, "hue=policy: has no effect"),
        ({"x": "r", "iteration": 10, "budget": 0.02}, "iteration=10, budget=0.02: two moments"),
        ({"x": "r", "y": "bandwidth", "iteration": 10}, "has no effect on bandwidth"),
        ({"select": {"radius": 3}}, "select='radius': not an axis"),
        ({"select": {"r": 3}}, "select=r=3: not in the sweep; choose from"),
    ],
)
def test_a_word_without_effect_is_refused(words, said, grid):
    with pytest.raises(efhc.ExperimentError) as error:
        efhc.plot(grid, **words)
    assert said in str(error.value)


def test_names_may_be_spelled_as_in_papers(grid):
    figure = efhc.plot(grid, x="r", select={"policy": "EF-HC"})
    expected = efhc.plot(grid, x="r", select={"policy": "efhc"})
    np.testing.assert_array_equal(
        figure.axes[0].lines[0].get_ydata(), expected.axes[0].lines[0].get_ydata()
    )
    crossed = grid.expand_dims(weak_fraction=[0.4])
    crossed.attrs = grid.attrs
    figure = efhc.plot(crossed, x="r", rows="weak_fraction", lead="EF-HC")
    assert figure.axes[0].get_title() == "EF-HC − ZT"


def test_a_run_has_no_axes(run):
    with pytest.raises(efhc.ExperimentError, match="hue=r: not an axis"):
        efhc.plot(run, hue="r")


@pytest.mark.parametrize("words", ["--y acuracy", "--budget 0.02", "--budget 7", "--iteration 3"])
def test_the_command_line_refuses_them_too(words, run, tmp_path, capsys):
    efhc.save(run, tmp_path / "run.nc")
    assert main(["plot", str(tmp_path / "run.nc"), *words.split()]) == 2
    assert words.split()[0].strip("-") in capsys.readouterr().err or "acuracy" in words
    assert not (tmp_path / "run.png").exists()


def test_runs_without_a_value_are_counted_and_marked(grid):
    missed = grid.copy(deep=True)
    missed["accuracy_at_budget"][0, 1, 0] = np.nan  # EF-HC with r = 4000 and seed 0
    axes = efhc.plot(missed, x="r", budget=0.02).axes[0]
    assert "1 of 8 runs have no value" in axes.get_title()
    hollow = [
        line for line in axes.lines if line.get_markerfacecolor() == "white" and len(line.get_xdata())
    ]
    assert [line.get_xdata().tolist() for line in hollow] == [[4000.0]]
    whole = efhc.plot(grid, x="r", budget=0.02).axes[0]
    assert "have no value" not in whole.get_title()


def test_a_folder_with_one_result_stands_for_it(run, tmp_path, capsys):
    efhc.save(run, tmp_path / "one" / "run.nc")
    assert main(["plot", str(tmp_path / "one")]) == 0
    assert (tmp_path / "one" / "run.png").exists()
    efhc.save(run, tmp_path / "one" / "more" / "run.nc")
    assert main(["plot", str(tmp_path / "one")]) == 2
    assert "contains 2 results (more/run.nc, run.nc); give one of them" in capsys.readouterr().err
