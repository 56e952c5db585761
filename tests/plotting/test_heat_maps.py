"""Heat maps show the very numbers of a sweep, and no cell that some seeds did not reach."""

import numpy as np
import pytest
import xarray

import efhc_jax as efhc
from efhc_jax.plotting.figures import Moment
from efhc_jax.plotting.heat_maps import draw_heat, draw_lead

POLICIES = ["gt", "efhc", "zt"]
AXES = ("policy", "r", "weak_fraction", "seed")


@pytest.fixture(scope="module")
def grid():
    """Accuracies that only depend on the seed, but for efhc, which is 2 or 4 points above the others."""
    shape = (3, 2, 2, 3)
    noise = np.random.default_rng(0).uniform(0.3, 0.6, (2, 2, 3))
    values = np.broadcast_to(noise, shape).copy()
    values[1] += np.array([0.02, 0.04])[:, None, None] + np.array([-0.001, 0, 0.001])
    accuracy = np.stack([np.zeros(shape), values], axis=-1)[..., None]
    coordinates = {
        "policy": POLICIES,
        "r": [40.0, 4000.0],
        "weak_fraction": [0.0, 0.4],
        "seed": [0, 1, 2],
        "iteration": ("evaluation", [0, 50]),
        "budget": [7.0],
    }
    at_budget = values[..., None, None].copy()
    at_budget[0, 1, 0, 2] = np.nan  # one seed of GT does not get there
    return xarray.Dataset(
        {
            "accuracy": ((*AXES, "evaluation", "device"), accuracy),
            "test_loss": ((*AXES, "evaluation", "device"), 1 - accuracy),
            "accuracy_at_budget": ((*AXES, "budget", "device"), at_budget),
        },
        coordinates,
    )


def texts(axes):
    return {text.get_position(): text for text in axes.texts}


def test_the_cells_of_a_heat_map_are_the_data(grid):
    figure = draw_heat(grid, "weak_fraction", "r", "accuracy", "policy")
    table = 100 * grid.accuracy[..., -1, 0].mean("seed")
    for axes, policy in zip(figure.axes[:3], POLICIES, strict=True):
        part = table.sel(policy=policy).transpose("r", "weak_fraction")
        np.testing.assert_allclose(axes.images[0].get_array(), part)
        assert axes.images[0].get_clim() == pytest.approx((float(table.min()), float(table.max())))
        for (row, column), entry in np.ndenumerate(part.values):
            assert texts(axes)[column, row].get_text() == f"{entry:.4g}"
    first = figure.axes[0]
    assert [label.get_text() for label in first.get_xticklabels()] == ["0.0", "0.4"]
    assert [label.get_text() for label in first.get_yticklabels()] == ["40.0", "4000.0"]
    assert [axes.get_title() for axes in figure.axes[:3]] == ["GT", "EF-HC", "ZT"]
    assert first.get_xlabel() == "fraction of weak devices H"
    assert first.get_ylabel() == "threshold scale r"
    assert figure.axes[-1].get_ylabel() == "test accuracy, mean over devices (%)"


def test_a_cell_that_some_seeds_did_not_reach_stays_empty(grid):
    figure = draw_heat(grid, "weak_fraction", "r", "accuracy", "policy", Moment(budget=7.0))
    assert texts(figure.axes[0])[0, 1].get_text() == "—"
    assert all(text.get_text() != "—" for text in figure.axes[1].texts)


def test_a_lead_is_the_paired_difference(grid):
    figure = draw_lead(grid, "efhc", "weak_fraction", "r")
    assert [axes.get_title() for axes in figure.axes[:2]] == ["EF-HC − GT", "EF-HC − ZT"]
    for axes in figure.axes[:2]:
        np.testing.assert_allclose(axes.images[0].get_array(), [[2, 2], [4, 4]])
        assert texts(axes)[0, 0].get_text() == "+2.00"
        assert texts(axes)[0, 0].get_weight() == "bold"


def test_a_lead_that_may_be_chance_is_in_brackets(grid):
    figure = draw_lead(grid, "gt", "weak_fraction", "r")
    behind, equal = figure.axes[:2]
    assert texts(behind)[0, 0].get_text() == "-2.00"
    assert texts(equal)[0, 0].get_text().strip("()+-") == "0.00"
    assert texts(equal)[0, 0].get_weight() == "normal"


def test_no_lead_is_shown_where_one_of_the_two_did_not_get_there(grid):
    figure = draw_lead(grid, "efhc", "weak_fraction", "r", moment=Moment(budget=7.0))
    over_gt, over_zt = figure.axes[:2]
    assert texts(over_gt)[0, 1].get_text() == "—"
    assert texts(over_zt)[0, 1].get_text() == "+4.00"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("devices", "r", "accuracy"), "devices: not an axis"),
        (("r", "devices", "accuracy"), "devices: not an axis"),
        (("r", "seed", "acuracy"), "acuracy: not in the results"),
        (("r", "r", "accuracy", "policy"), "r: used twice"),
        (("r", "policy", "accuracy", "policy"), "policy: used twice"),
    ],
)
def test_heat_maps_that_cannot_be_drawn_are_explained(grid, arguments, message):
    with pytest.raises(efhc.ExperimentError, match=message):
        draw_heat(grid, *arguments)


def test_leads_that_cannot_be_drawn_are_explained(grid):
    with pytest.raises(efhc.ExperimentError, match="lead=rg: not among the policies"):
        draw_lead(grid, "rg", "weak_fraction", "r")
    with pytest.raises(efhc.ExperimentError, match="taken over seeds"):
        draw_lead(grid, "efhc", "seed", "r")
    with pytest.raises(efhc.ExperimentError, match="paired by seed"):
        draw_lead(grid.isel(seed=0), "efhc", "weak_fraction", "r")
