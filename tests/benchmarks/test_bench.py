"""The benchmark command: what it counts, compares, stores and shows. Nothing here asserts a time."""

import importlib
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params
from jax.sharding import Mesh

from benchmarks import agreement, cnn, limits, ours, pictures, report, timing
from benchmarks.data import images_of_paper, random_images
from benchmarks.peers import numpy_stacked
from benchmarks.suites import accelerators, methods, peers, scaling, startup
from efhc_jax.cli import bench, main
from efhc_jax.data import load_dataset
from efhc_jax.engine.program import laid_out
from efhc_jax.engine.sharding import SINGLE, Layout
from efhc_jax.errors import EfhcError
from efhc_jax.experiment.experiment import Experiment
from efhc_jax.models import make_model
from efhc_jax.network.slots import make_network
from efhc_jax.runs.prepare import make_spec

PARAMETERS = {"svm": 7850, "lenet5": 61_706, "cnn": 105_866}


def test_a_batch_is_the_program_of_a_sweep(monkeypatch):
    """Also where the devices of each run are spread over accelerators."""
    mesh = Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("runs", "rows"))
    layout = Layout(mesh, devices=6)
    monkeypatch.setattr(ours, "choose_layout", lambda *_: layout)
    seen = []
    monkeypatch.setattr(ours, "_compile", lambda experiment, spec, *_: seen.append(spec))
    experiment = Experiment(dataset="synthetic", devices=6, iterations=4)
    data = load_dataset("synthetic")
    ours.batch_of(experiment, data, iterations=4, runs=2)
    fitted, _ = layout.fitted(2)
    assert seen == [laid_out(make_spec(experiment, data), fitted)]
    assert seen[0].rules.rows is mesh


# Work ------------------------------------------------------------------------------------------------


def products_of(function, *arguments):
    """Operations in the matrix products and convolutions of a traced function, loops included."""

    def count(jaxpr):
        total = 0
        for equation in jaxpr.eqns:
            inner = jaxprs_in_params(equation.params)
            total += equation.params.get("length", 1) * sum(count(one) for one in inner)
            if equation.primitive.name == "dot_general":
                (contracted, _), _ = equation.params["dimension_numbers"]
                left = equation.invars[0].aval.shape
                summed = np.prod([left[axis] for axis in contracted], dtype=int)
                total += 2 * equation.outvars[0].aval.size * int(summed)
        return total

    return count(jax.make_jaxpr(function)(*arguments).jaxpr)


@pytest.mark.parametrize("model", PARAMETERS)
def test_the_formula_counts_the_products_of_the_gradient(model):
    if model == "svm":
        # The scores of one sample and the outer product that is its gradient, by hand.
        assert limits.forward_flops(model, PARAMETERS[model]) == 2 * 10 * 785
        assert limits.gradient_flops(model, PARAMETERS[model]) == 2 * (2 * 10 * 785)
        return
    layers = {
        "lenet5": [(6, 25, 784), (16, 150, 100), (120, 400, 1), (84, 120, 1), (10, 84, 1)],
        "cnn": [(16, 9, 784), (32, 144, 196), (64, 1568, 1), (10, 64, 1)],
    }[model]

    def loss(kernels, inputs):
        """Products of the same shapes as LeNet5's, one layer feeding the next through a plain sum."""
        total = 0.0
        for kernel, x in zip(kernels, inputs, strict=True):
            y = jnp.tanh(kernel @ (x + total))
            total = y.sum()
        return total

    kernels = [jnp.ones((outputs, fan)) for outputs, fan, _ in layers]
    inputs = [jnp.ones((fan, places)) for _, fan, places in layers]
    assert products_of(loss, kernels, inputs) == limits.forward_flops(model, PARAMETERS[model])
    gradient = products_of(jax.grad(loss), kernels, inputs)
    assert gradient == limits.gradient_flops(model, PARAMETERS[model])


@pytest.mark.parametrize("model", PARAMETERS)
def test_the_formula_is_what_the_compiler_counts_at_least(model):
    """XLA counts tanh, sums and the rest as well, so its count is somewhat larger.

    It leaves out what convolutions multiply with the empty border of an image.
    """
    made = cnn.cnn((28, 28), 10) if model == "cnn" else make_model(model, (28, 28), 10)
    row = made.init(jax.random.key(0))
    images = jnp.zeros((64, 28, 28))
    # LeNet5's other form multiplies kernels with zeros, to have fewer patches.
    logits = made.logits_on_cpu if model == "lenet5" else made.logits
    compiled = jax.jit(logits).lower(row, images).compile()
    counted = compiled.cost_analysis()["flops"] / 64
    formula = limits.forward_flops(model, made.size)
    assert made.size == PARAMETERS[model]
    border = 0.9 if model == "cnn" else 1
    assert border * formula <= counted < 1.5 * formula


def test_mixing_counts_both_ends_of_links_and_everybody_once():
    # Three devices on a path have two links: seven entries of P that are not zero.
    assert limits.mixing_flops(100, 3, links=2) == 2 * 100 * 7
    assert limits.iteration_flops("svm", 7850, 3, 5, links=2) == 3 * 5 * 31_400 + 2 * 7850 * 7


def test_a_pass_keeps_the_models():
    weights = jnp.arange(24.0).reshape(4, 2, 3)
    for layout in (SINGLE, Layout(block=2)):
        one = limits.pass_over_models(layout, weights, 5)
        for after in one.work(one.prepare()):
            np.testing.assert_array_equal(after, weights)
    assert limits.pass_bytes(7850, 10) == 4 * 78_500 * 4


# Time ------------------------------------------------------------------------------------------------


def test_everybody_has_a_turn_in_every_round_and_fresh_inputs():
    calls = []

    def contender(name):
        return timing.Contender(calls.append, lambda: f"{name}{len(calls)}")

    found = timing.alternate({name: contender(name) for name in "ab"}, rounds=2, shortest_turn=0)
    assert calls == ["a0", "b1", "a2", "b3", "a4", "b5", "b6", "a7"]
    assert [len(one.samples) for one in found.values()] == [2, 2]
    stored = found["a"].to_dict(0.5)
    assert stored["best"] == min(sample["wall"] for sample in stored["samples"])
    assert stored["first"] == found["a"].first.wall / 2


# Agreement -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small():
    """One SVM run of four devices in 64 bits, and the same for a peer."""
    data = random_images(28, 40)
    experiment = Experiment(devices=4, graph="ring", split="iid", r=2000.0, learning_rate=0.1)
    with jax.enable_x64(True):
        made = ours.one_run(experiment, data, iterations=6)
        yield made, ours.problem_of(made, data), data


def test_agreement_is_found_and_counted(small):
    made, problem, data = small
    with jax.enable_x64(True):
        found = agreement.check_agreement(made, problem, {"numpy": numpy_stacked})
        accuracy = agreement.check_evaluation(made, data, {"numpy": numpy_stacked})
    assert found.iterations == 6
    assert found.weights < 1e-12
    assert 0 < found.broadcasts < 6 * 4
    assert 0 <= accuracy <= 1


def test_a_peer_that_goes_another_way_is_not_timed(small):
    made, problem, _ = small
    wrong = problem._replace(learning_rate=(0.1001, 1.0, 0.5))
    with (
        jax.enable_x64(True),
        pytest.raises(EfhcError, match="numpy does not agree .* nothing was timed"),
    ):
        agreement.check_agreement(made, wrong, {"numpy": numpy_stacked})


def test_neighbour_lists_reach_the_peers_as_matrices(small):
    made, _, data = small
    links = scaling.random_links(72)
    network = make_network(links, 72)
    assert network.neighbors is not None
    lists = made.values.network._replace(
        adjacency=network.links[None], neighbors=network.neighbors[None]
    )
    values = made.values._replace(network=lists)
    adjacency = ours.problem_of(made._replace(values=values), data).adjacency[0]
    np.testing.assert_array_equal(np.argwhere(np.triu(adjacency)), links)
    assert 9 < adjacency.sum(1).mean() <= 10


def test_test_images_repeat_where_there_are_too_few():
    data = images_of_paper(1500, full=False)
    assert data.test_images.shape == (1500, 28, 28)
    assert data.test_labels.shape == (1500,)


# Reports ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small_products():
    """A rate of matrix products that costs nothing to measure."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "PRODUCT_SIZE", 64)
        yield


@pytest.fixture(scope="module")
def peer_report(small_products):
    work = peers.Work("svm", 1, iterations=2, checked=2, rounds=1, test_images=20, full_data=False)
    part = peers.measure_here(work)
    return complete("peers", part, works=part["works"], verdicts=peers.verdicts(part["works"]))


@pytest.fixture(scope="module")
def scaling_report(small_products):
    """A run that is part of three lines, and a batch."""
    wanted = [scaling.Point(axis, devices=4, side=8) for axis in scaling.AXES if axis != "runs"]
    wanted.append(scaling.Point("runs", runs=2, side=8))
    part = scaling.measure_here(wanted, rounds=1)
    points = part["points"]
    return complete("scaling", part, points=points, grid={}, verdicts=[])


@pytest.fixture(scope="module")
def methods_report():
    """A method with a message of two arrays, a compressor and an optimizer, each next to its base."""
    names = ("gossip", "copies", "tracking", "copies, sign", "gossip, momentum")
    variants = [one for one in methods.VARIANTS if one.name in names]
    part = methods.measure_here(methods.Size("svm", 1, 2, 1, full_data=False), variants)
    programs = methods.count_programs(["qg_momentum"])
    works = [part["work"]]
    verdicts = methods.verdicts(works, programs)
    return complete("methods", part, works=works, programs=programs, verdicts=verdicts)


@pytest.fixture(scope="module")
def startup_report():
    starts = [{"what": what, "samples": [3.0, 2.0]} for what in startup.TARGETS]
    part = {"machine": peers.machine()}
    return complete("startup", part, starts=starts, verdicts=startup.verdicts(starts))


@pytest.fixture(scope="module")
def accelerators_report():
    work = accelerators.Work("svm", runs=64)
    counts = {"launches": 7.5, "bytes": 3e6, "least_bytes": 2e6, "flops": 1e6, "modelled_seconds": 1e-4}
    sizes = {"temporary_bytes": 1000, "peak_bytes": 10**6, "compile_seconds": 1.0, "parameters": 7850}
    program = {"work": work.name, "target": "H100", **work._asdict(), **counts, **sizes}
    program |= {
        "outside_fusions": {"copy": 1.0},
        "collectives": {},
        "copies_of_models": 0,
        "with_host": 0,
    }
    part = {"machine": peers.machine()}
    verdicts = accelerators.verdicts([program])
    return complete("accelerators", part, programs=[program], measured=[], verdicts=verdicts)


def complete(suite, part, **found):
    found["verdicts"] = [verdict.to_dict() for verdict in found["verdicts"]]
    head = {"suite": suite, "quick": True, "began": peers.now(), "seconds": 1.0}
    return head | {"versions": peers.versions(), "machines": [part["machine"]]} | found


@pytest.mark.parametrize(
    "suite",
    [pytest.param(name, marks=[pytest.mark.torch] if name == "peers" else []) for name in bench.SUITES],
)
def test_a_report_is_stored_shown_and_drawn(suite, request, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    made = request.getfixturevalue(f"{'peer' if suite == 'peers' else suite}_report")
    module = importlib.import_module(f"benchmarks.suites.{suite}")
    monkeypatch.setattr(module, "run", lambda quick, say: made)
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "--suite", suite, "--quick", "--out", "results"]) == 0
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == [
        f"{suite}.{ending}" for ending in ("json", "md", "png")
    ]
    assert json.loads((tmp_path / "results" / f"{suite}.json").read_text()) == made
    text = (tmp_path / "results" / f"{suite}.md").read_text()
    assert text.startswith(f"Measured by `efhc bench --suite {suite} --quick` on 20")
    out = capsys.readouterr().out
    for sheet in report.sheets(made):
        assert sheet.title in out
        assert sheet.title in text
        assert all(len(row) == len(sheet.columns) for row in sheet.rows)
    assert f"wrote results/{suite}.png" in out


@pytest.mark.torch
def test_the_peers_report_has_everything_that_was_measured(peer_report):
    iterations, evaluation = peer_report["works"]
    assert {"processor", "cores", "jax_devices", "load_average"} <= set(peer_report["machines"][0])
    assert {"python", "jax", "numpy", "torch", "efhc-jax"} == set(peer_report["versions"]) - {"jaxlib"}
    assert set(iterations["timings"]) == {"ours", *peers.PEERS, "pass"}
    assert set(evaluation["timings"]) == {"ours", *peers.PEERS}
    for work in (iterations, evaluation):
        assert set(work["product_rates"]) == {"product, jax", "product, numpy", "product, torch"}
        for taken in work["timings"].values():
            assert set(taken) == {"first", "best", "samples"}
            assert all(set(sample) == {"wall", "cpu"} for sample in taken["samples"])
    assert iterations["agreement"]["weights"] < 1e-12
    links = iterations["links_used"]
    assert iterations["flops"] == 10 * 31_400 + 2 * 7850 * (10 + 2 * links)
    assert evaluation["flops"] == 11 * 20 * 15_700


def test_the_scaling_report_has_limits_and_memory(scaling_report):
    points = scaling_report["points"]
    assert [(p["axis"], p["x"]) for p in points] == [
        ("devices", 4),
        ("parameters", 650),
        ("batch_size", 1),
        ("runs", 2),
    ]
    assert points[0]["timing"] is points[1]["timing"]
    for point in points:
        assert point["memory_bytes"] > 2 * 4 * point["devices"] * point["runs"] * point["parameters"]
        assert point["limit"] == max(point["pass"]["best"], point["flops"] / rate_of(point))
        assert point["bound"] in ("memory", "arithmetic")
        assert point["iterations"] % 2 == 0


def rate_of(point):
    """The rate that the limit was made with, where arithmetic is the limit; otherwise no limit."""
    return point["flops"] / point["limit"] if point["bound"] == "arithmetic" else np.inf


def test_full_sizes_are_those_that_are_asked_for():
    wanted = scaling.points(quick=False)
    assert [p.devices for p in wanted if p.axis == "devices"][0::6] == [10, 10_000]
    assert {p.axis for p in wanted} == set(scaling.AXES) == {p.axis for p in scaling.points(quick=True)}
    sizes = {}
    for work in peers.FULL:
        sizes.setdefault((work.model, work.runs), []).append(work.batch_size)
    assert sizes == {
        ("svm", 1): [1, 4, 16, 64],
        ("svm", 64): [1, 16, 64],
        ("lenet5", 1): [1, 4, 16, 64],
        ("lenet5", 16): [1, 16],
        ("cnn", 1): [1, 32],
    }
    assert len({work.name for work in peers.FULL}) == len(peers.FULL)
    evaluated = [(work.model, work.runs, work.batch_size) for work in peers.FULL if work.test_images]
    assert evaluated == [("svm", 1, 1), ("lenet5", 1, 1)]


# Verdicts --------------------------------------------------------------------------------------------


def work_with(seconds, **fields):
    timings = {name: {"best": value} for name, value in seconds.items()}
    base = {"name": "SVM, batch of 64", "model": "svm", "runs": 64, "kind": "iterations"}
    base |= {"batch_size": 1}
    return base | {"flops": 1e6, "product_rates": {"a": 1e11, "b": 5e10}, "timings": timings} | fields


def test_targets_are_judged_against_the_faster_peer_and_the_best_rate():
    times = {"ours": 2.0, "torch_modules": 100.0, "torch_stacked": 30.0, "numpy_stacked": 12.0}
    times |= {"pass": 1.0, "pass in blocks": 0.5}
    work = work_with({name: seconds * 1e-5 for name, seconds in times.items()})
    modules, stacked, pytorch, passes, in_blocks = peers.verdicts([work])
    assert (pytorch.measured, pytorch.target, pytorch.met) == (pytest.approx(15), 2, True)
    assert "(b)" in pytorch.what
    assert (modules.measured, modules.target, modules.met) == (pytest.approx(50), 100, False)
    assert (stacked.measured, stacked.target, stacked.met) == (pytest.approx(6), 5, True)
    assert "(c)" in stacked.what
    assert (passes.measured, passes.target, passes.met) == (pytest.approx(2), 1.5, False)
    assert (in_blocks.measured, in_blocks.met) == (pytest.approx(4), None)
    *_, rate = peers.verdicts([work | {"model": "lenet5"}])
    assert (rate.measured, rate.target, rate.met) == (pytest.approx(0.5), 0.15, True)
    pytorch, rate = peers.verdicts([work | {"model": "lenet5", "batch_size": 16}])
    assert (pytorch.target, rate.target) == (1.5, 0.2)


def test_the_cnn_is_judged_against_pytorch_alone():
    times = {"ours": 1e-5, "torch_modules": 0.9e-5, "torch_stacked": 2e-5}
    work = work_with(times, name="CNN of a user, one run", model="cnn", runs=1)
    (only,) = peers.verdicts([work])
    assert (only.measured, only.target, only.met) == (pytest.approx(0.9), 1, False)
    assert "(a)" in only.what


def test_verdicts_are_plain_words():
    made = [
        report.Verdict("one", "times as fast as (a)", 61.0, 60.0),
        report.Verdict("two", "of the machine's matrix-product rate", 0.1234, 0.15, percent=True),
        report.Verdict("three", "seconds", 0.4, None, at_least=False),
    ]
    sheet = report._verdict_sheet([one.to_dict() for one in made], "2 CPU cores")
    assert sheet.rows == [
        ["one", "times as fast as (a)", "61", "at least 60", "met"],
        ["two", "of the machine's matrix-product rate", "12.3%", "at least 15.0%", "not met"],
        ["three", "seconds", "0.4", "", ""],
    ]


def test_durations_have_a_unit_that_suits_them():
    shown = [report.duration(x) for x in (0.0000005, 0.0009999, 0.02, 0.9999, 75.0)]
    assert shown == ["0.5 µs", "1 ms", "20 ms", "1 s", "75 s"]


def test_an_installed_package_without_the_checkout_says_so(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(bench, "__file__", str(tmp_path / "efhc_jax" / "cli" / "bench.py"))
    assert main(["bench", "--out", str(tmp_path / "results")]) == 2
    assert "clone the project" in capsys.readouterr().err


def test_the_progress_bar_of_a_run_is_recognised():
    shown = b"\x1b[2Kefhc \xc2\xb7 svm \x1b[38;5;237m----\x1b[0m 0/12,000 compiling"
    assert not startup._ITERATIONS.search(startup._COLOURS.sub(b"", shown))
    shown += b"\r\x1b[2Kefhc \x1b[31m----\x1b[0m \x1b[32m300\x1b[0m/12,000"
    assert startup._ITERATIONS.search(startup._COLOURS.sub(b"", shown))


@pytest.mark.parametrize(
    ("made", "panels"),
    [
        pytest.param("peer_report", 2, marks=pytest.mark.torch),
        ("scaling_report", 4),
        ("methods_report", 1),
        ("startup_report", 1),
    ],
)
def test_pictures_are_drawn_with_a_panel_for_each_part(request, made, panels):
    drawn = pictures.draw(request.getfixturevalue(made))
    assert len([axes for axes in drawn.axes if axes.get_visible()]) == panels
