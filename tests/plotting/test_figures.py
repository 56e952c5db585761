"""Pictures: the right numbers under the right names, and one look for each policy everywhere."""

import matplotlib.colors
import numpy as np
import pytest
import xarray

import efhc_jax as efhc
from efhc_jax.plotting.figures import (
    Moment,
    describe,
    draw_curves,
    draw_lines,
    draw_run,
    over_common_cost,
    save_figure,
)
from efhc_jax.plotting.styles import LOOKS, METHOD_LOOKS, look_of
from efhc_jax.results.costs import cost_at_evaluations
from efhc_jax.results.selection import swept
from small import SMALL

BASE = SMALL.replace(budgets=(0.02,))
POLICIES = ["gt", "efhc", "zt", "rg"]


@pytest.fixture(scope="module")
def grid(tiny):
    """Policies in an order that is not that of the looks."""
    return efhc.sweep(BASE, tiny, policy=POLICIES, r=[40.0, 4000.0], seed=range(2))


@pytest.fixture(scope="module")
def run(tiny):
    return efhc.simulate(BASE.replace(policy="zt"), tiny)


def lines(axes):
    return {line.get_label(): line for line in axes.lines}


def bands(axes):
    return [matplotlib.colors.to_hex(band.get_facecolor()[0]).upper() for band in axes.collections]


def legend_labels(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_looks_are_all_different():
    for part in ("label", "color", "marker"):
        assert len({getattr(look, part) for look in LOOKS.values()}) == len(efhc.POLICIES)
    assert set(LOOKS) == set(efhc.POLICIES)
    assert look_of("policy", "zt", 5) == LOOKS["zt"]
    assert look_of("r", 5.0, 0).label == "r 5.0"
    assert look_of("r", 5.0, 0) != look_of("r", 50.0, 1)


def test_a_policy_of_the_users_own_looks_like_no_other():
    looks = [look_of("policy", name, position) for position, name in enumerate(["mine", "yours"])]
    assert [look.label for look in looks] == ["mine", "yours"]
    for part in ("color", "marker"):
        every = [getattr(look, part) for look in (*LOOKS.values(), *looks)]
        assert len(set(every)) == len(every)


def test_a_setting_is_described_without_what_is_swept():
    experiment = efhc.Experiment(r=5.0)
    assert describe(experiment) == "svm on fashion_mnist, 10 devices, r = 5, H = 0.4"
    assert describe(experiment, ["r", "seed"]) == "svm on fashion_mnist, 10 devices, H = 0.4"
    assert describe(experiment, ["model"]) == "10 devices, r = 5, H = 0.4, fashion_mnist"
    assert describe(experiment.replace(policy="zt")) == "svm on fashion_mnist, 10 devices, H = 0.4"
    nested = efhc.Experiment(connectivity=0.6, placement=0.3)
    assert describe(nested).endswith(", nested graphs")


def test_a_run_over_iterations_and_over_time(run):
    figure = draw_run(run)
    by_iteration, by_time = figure.axes
    (line,) = by_iteration.lines
    np.testing.assert_array_equal(line.get_xdata(), [0, 10, 20])
    np.testing.assert_allclose(line.get_ydata(), 100 * run.accuracy.mean("device"))
    assert line.get_color() == LOOKS["zt"].color
    assert line.get_label() == "ZT"
    (over_time,) = by_time.lines
    sums = np.cumsum(run.transmission_time.values, dtype=np.float64)
    np.testing.assert_allclose(over_time.get_xdata(), [0, sums[9], sums[19]])
    np.testing.assert_allclose(over_time.get_ydata(), line.get_ydata())
    assert by_iteration.get_xlabel() == "iteration"
    assert by_time.get_xlabel() == "cumulative transmission time"
    assert "accuracy" in by_iteration.get_ylabel()
    assert "%" in by_iteration.get_ylabel()
    band = by_iteration.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(100 * float(run.accuracy.max()))
    assert figure.get_suptitle() == "svm on tiny, 5 devices, H = 0.4"


def test_curves_have_a_line_and_a_band_for_each_policy(grid):
    figure = draw_curves(grid.sel(r=40.0))
    by_iteration, by_time = figure.axes
    for axes in (by_iteration, by_time):
        assert list(lines(axes)) == ["GT", "EF-HC", "ZT", "RG"]
        for policy in POLICIES:
            look = LOOKS[policy]
            assert lines(axes)[look.label].get_color() == look.color
            assert lines(axes)[look.label].get_marker() == look.marker
        assert bands(axes) == [LOOKS[policy].color.upper() for policy in POLICIES]
    expected = 100 * grid.accuracy.sel(r=40.0, policy="rg").mean(["device", "seed"])
    np.testing.assert_allclose(lines(by_iteration)["RG"].get_ydata(), expected)
    assert legend_labels(by_iteration) == ["GT", "EF-HC", "ZT", "RG"]
    assert "2 seeds" in by_iteration.get_legend().get_title().get_text()
    assert by_time.get_xlabel() == "cumulative transmission time"


def test_curves_may_differ_in_something_else(grid):
    figure = draw_curves(grid.sel(policy="zt"), hue="r")
    assert list(lines(figure.axes[0])) == ["r 40.0", "r 4000.0"]


def test_one_seed_has_lines_without_bands(grid):
    figure = draw_curves(grid.sel(r=40.0).isel(seed=[0]))
    for axes in figure.axes:
        assert len(axes.lines) == 4
        assert bands(axes) == []
    assert "seeds" not in figure.axes[0].get_legend().get_title().get_text()


def test_a_policy_that_was_selected_keeps_its_look(grid):
    (line,) = draw_curves(grid.sel(r=40.0, policy="zt")).axes[0].lines
    assert (line.get_label(), line.get_color()) == ("ZT", LOOKS["zt"].color)


def test_a_sweep_of_one_policy_has_its_look(tiny):
    grid = efhc.sweep(BASE.replace(policy="rg"), tiny, connectivity=[0.6, 0.9], seed=range(8))
    (line,) = draw_curves(grid.sel(connectivity=0.6)).axes[0].lines
    assert (line.get_label(), line.get_color()) == ("RG", LOOKS["rg"].color)


def test_the_title_names_what_was_selected(grid):
    assert "r = 40," in draw_curves(grid.sel(r=40.0)).get_suptitle()
    assert "r = 4000," in draw_curves(grid.sel(r=4000.0)).get_suptitle()


def test_curves_of_a_sweep_in_which_a_run_diverged(grid):
    part = grid.sel(r=40.0).copy(deep=True)
    part.accuracy[0, 0, 2] = np.nan
    part.transmission_time[0, 0, 10:] = np.nan
    figure = draw_curves(part)
    figure.draw_without_rendering()
    for axes in figure.axes:
        for label in ("EF-HC", "ZT", "RG"):
            x, y = lines(axes)[label].get_data()
            assert np.isfinite(x).all()
            assert np.isfinite(y).all()
        assert np.isfinite(lines(axes)["GT"].get_xdata()).any()
        assert np.isfinite(axes.get_xlim()).all()


def test_lines_over_an_axis(grid):
    figure = draw_lines(grid, "r", "accuracy", "policy")
    (axes,) = figure.axes
    assert list(lines(axes)) == ["GT", "EF-HC", "ZT", "RG"]
    for policy in POLICIES:
        line = lines(axes)[LOOKS[policy].label]
        assert line.get_color() == LOOKS[policy].color
        np.testing.assert_array_equal(line.get_xdata(), [40.0, 4000.0])
        expected = 100 * grid.accuracy.sel(policy=policy)[..., -1, :].mean(["seed", "device"])
        np.testing.assert_allclose(line.get_ydata(), expected)
    assert bands(axes) == [LOOKS[policy].color.upper() for policy in POLICIES]
    assert axes.get_xlabel() == "threshold scale r"
    assert axes.get_ylabel() == "test accuracy, mean over devices (%)"
    assert axes.get_xscale() == "log"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["40", "4000"]
    assert axes.get_title() == "after 20 iterations"


def test_lines_at_other_moments(grid):
    early = draw_lines(grid, "r", "consensus_error", "policy", Moment(iteration=10)).axes[0]
    expected = grid.consensus_error.sel(policy="zt").isel(evaluation=1).mean("seed")
    np.testing.assert_allclose(lines(early)["ZT"].get_ydata(), expected)
    assert early.get_title() == "after 10 iterations"
    assert early.get_ylabel() == "consensus error"
    budget = draw_lines(grid, "r", "accuracy", "policy", Moment(budget=0.02)).axes[0]
    expected = 100 * grid.accuracy_at_budget.sel(policy="zt", budget=0.02).mean(["seed", "device"])
    np.testing.assert_allclose(lines(budget)["ZT"].get_ydata(), expected)
    assert budget.get_title() == "within a transmission time of 0.02"


def test_lines_of_what_every_step_gives(grid):
    axes = draw_lines(grid, "r", "transmission_time", "policy").axes[0]
    expected = grid.transmission_time.sel(policy="gt").mean(["step", "seed"])
    np.testing.assert_allclose(lines(axes)["GT"].get_ydata(), expected)


def test_lines_over_policies(grid):
    figure = draw_lines(grid.sel(r=40.0), "policy", "accuracy")
    figure.draw_without_rendering()
    (line,) = figure.axes[0].lines
    assert list(line.get_xdata()) == POLICIES


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": "devices", "y": "accuracy"}, "devices: not an axis of this sweep"),
        ({"x": "evaluation", "y": "accuracy"}, "evaluation: not an axis of this sweep"),
        ({"x": "r", "y": "acuracy"}, "acuracy: not in the results; choose from accuracy"),
        ({"x": "r", "y": "accuracy"}, r"policy: the sweep has .*--select policy=gt"),
        ({"x": "r", "y": "accuracy", "hue": "polcy"}, "polcy: not an axis of this sweep"),
        ({"x": "r", "y": "accuracy", "hue": "r"}, "r: used twice"),
        ({"x": "r", "y": "accuracy_at_budget", "hue": "policy"}, "budget"),
        (
            {"x": "r", "y": "accuracy", "hue": "policy", "moment": Moment(iteration=12)},
            "iteration=12: has no evaluation; try 10",
        ),
        (
            {"x": "r", "y": "accuracy", "hue": "policy", "moment": Moment(budget=7.0)},
            r"budget=7: not set before the run; choose from \[0.02\]",
        ),
        (
            {"x": "r", "y": "test_loss", "hue": "policy", "moment": Moment(budget=0.02)},
            "y=test_loss: not evaluated at budgets; only accuracy is",
        ),
    ],
)
def test_lines_that_cannot_be_drawn_are_explained(grid, arguments, message):
    with pytest.raises(efhc.ExperimentError, match=message):
        draw_lines(grid, **arguments)


def test_curves_with_axes_left_over_say_what_to_select(grid):
    with pytest.raises(efhc.ExperimentError, match=r"r: the sweep has \[40.0, 4000.0\]; choose one"):
        draw_curves(grid)


def hand_made():
    """Two seeds: one spends 2 an iteration, the other 1; both gain ten per cent an iteration."""
    accuracy = np.array([[[0.0], [0.2], [0.4]], [[0.0], [0.2], [0.4]]])
    times = np.array([[2.0] * 4, [1.0] * 4], np.float32)
    return xarray.Dataset(
        {
            "accuracy": (("seed", "evaluation", "device"), accuracy),
            "transmission_time": (("seed", "step"), times),
        },
        {"seed": [0, 1], "iteration": ("evaluation", [0, 2, 4])},
    )


def test_cost_at_evaluations_by_hand():
    assert cost_at_evaluations(hand_made().isel(seed=0)).tolist() == [0, 4, 8]
    assert cost_at_evaluations(hand_made().isel(seed=1)).tolist() == [0, 2, 4]


def test_accuracy_at_common_times_by_hand():
    common, found = over_common_cost(hand_made(), points=5)
    np.testing.assert_allclose(common, [0, 1, 2, 3, 4])
    np.testing.assert_allclose(found.mean, [0, 7.5, 15, 22.5, 30])
    reach = found.high - found.mean
    np.testing.assert_allclose(reach, 12.706205 * np.array([0, 2.5, 5, 7.5, 10]), rtol=1e-6)
    common, alone = over_common_cost(hand_made().isel(seed=0), points=3)
    np.testing.assert_allclose(common, [0, 4, 8])
    np.testing.assert_allclose(alone.mean, [0, 20, 40])
    assert alone.low.isnull().all()


def test_a_diverged_seed_does_not_shorten_the_others():
    part = hand_made()
    part.transmission_time[1, 2:] = np.nan
    part.accuracy[1, 2:] = np.nan
    common, found = over_common_cost(part, points=5)
    np.testing.assert_allclose(common, [0, 2, 4, 6, 8])
    np.testing.assert_array_equal(found.seeds, [2, 2, 1, 1, 1])
    np.testing.assert_allclose(found.mean[2:], [20, 30, 40])


def test_the_value_zero_has_its_own_name(tiny):
    grid = efhc.sweep(BASE, tiny, r=[0.0, 50.0], seed=range(2))
    assert legend_labels(draw_curves(grid, "r").axes[0]) == ["r 0.0", "r 50.0"]
    by_seed = draw_lines(grid, "r", "accuracy", "seed").axes[0]
    assert legend_labels(by_seed) == ["seed 0", "seed 1"]


def test_what_is_recorded_in_every_iteration_is_averaged_up_to_the_moment(grid):
    axes = draw_lines(grid, "r", "transmission_time", "policy", Moment(iteration=10)).axes[0]
    expected = grid.transmission_time.sel(policy="zt").isel(step=slice(10)).mean(("step", "seed"))
    np.testing.assert_allclose(lines(axes)["ZT"].get_ydata(), expected)
    assert axes.get_title() == "mean over 10 iterations"


def test_the_axes_of_a_sweep(grid, run):
    assert swept(grid) == ["policy", "r", "seed"]
    assert swept(run) == []
    assert swept(grid.sel(policy="zt")) == ["r", "seed"]


@pytest.mark.parametrize(("ending", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_pictures_are_written_whole_in_the_format_of_their_ending(run, tmp_path, ending, magic):
    path = save_figure(draw_run(run), tmp_path / f"picture.{ending}")
    assert path.read_bytes().startswith(magic)
    assert path.stat().st_size > 5000
    assert [entry.name for entry in tmp_path.iterdir()] == [f"picture.{ending}"]


def test_a_picture_that_fails_leaves_the_old_one(run, tmp_path, monkeypatch):
    path = tmp_path / "picture.png"
    path.write_bytes(b"old")
    figure = draw_run(run)

    def half(part, **options):
        part.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(figure, "savefig", half)
    with pytest.raises(OSError, match="No space left"):
        save_figure(figure, path)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["picture.png"]


def test_a_setting_in_a_line():
    text = describe(efhc.Experiment(model="lenet5", devices=7, r=0.5, weak_fraction=0.25))
    assert text == "lenet5 on fashion_mnist, 7 devices, r = 0.5, H = 0.25"


@pytest.fixture(scope="module")
def methods(tiny):
    """Methods whose bits differ by orders of magnitude."""
    base = BASE.inherit({"method.compressor": "sign", "policy": "zt"})
    return efhc.sweep(base, tiny, method=["gossip", "choco", "tracking"], seed=range(2))


def test_methods_have_looks_of_their_own():
    assert set(METHOD_LOOKS) == set(efhc.METHODS)
    own = [look_of("method", name, position) for position, name in enumerate(["mine", "yours"])]
    for part in ("label", "color", "marker"):
        every = [getattr(look, part) for look in (*METHOD_LOOKS.values(), *own)]
        assert len(set(every)) == len(every)
    assert [look.label for look in own] == ["mine", "yours"]


def test_curves_have_a_line_for_each_method(methods):
    figure = draw_curves(methods, "method", costs=("iteration", "bits"))
    by_iteration, by_bits = figure.axes
    for axes in (by_iteration, by_bits):
        assert list(lines(axes)) == ["gossip", "CHOCO-SGD", "gradient tracking"]
        assert bands(axes) == [METHOD_LOOKS[name].color.upper() for name in methods["method"].values]
    assert figure.get_suptitle().startswith("ZT, svm on tiny, ")
    assert (by_iteration.get_xscale(), by_bits.get_xlabel()) == ("linear", "bits sent")


def test_costs_that_differ_by_orders_of_magnitude_have_a_logarithmic_axis(methods):
    far = methods.copy(deep=True)
    far["bits"].loc[{"method": "choco"}] /= 100
    (axes,) = draw_curves(far, "method", costs=["bits"]).axes
    assert axes.get_xscale() == "log"
    for name, look in METHOD_LOOKS.items():
        if name not in far["method"]:
            continue
        part = far.sel({"method": name})
        spent = part.bits.cumsum("step").values  # (seed, step)
        drawn = lines(axes)[look.label].get_xdata()
        np.testing.assert_allclose(drawn[-1], spent[:, -1].min(), rtol=1e-5)
        first = int(part.iteration[1]) - 1
        np.testing.assert_allclose(drawn[0], spent[:, first].max(), rtol=1e-5)
        np.testing.assert_allclose(drawn[1:] / drawn[:-1], (drawn[-1] / drawn[0]) ** (1 / 59), rtol=1e-5)
    near = methods.sel({"method": ["gossip", "tracking"]})
    (axes,) = draw_curves(near, "method", costs=["bits"]).axes
    assert axes.get_xscale() == "linear"
    silent = far.copy(deep=True)
    silent["bits"].loc[{"method": "choco"}] = 0
    (axes,) = draw_curves(silent, "method", costs=["bits"]).axes
    assert axes.get_xscale() == "linear", "0 has no place on a logarithmic axis"


def test_a_single_run_is_labelled_with_its_method(tiny):
    run = efhc.simulate(BASE.replace(method="copies", policy="zt"), tiny)
    (line,) = draw_run(run).axes[0].lines
    assert (line.get_label(), line.get_color()) == ("copies, ZT", METHOD_LOOKS["copies"].color)
    assert draw_run(run).get_suptitle().startswith("copies, svm on tiny")
