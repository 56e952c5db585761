"""Memory: estimates near what the compiler says, and batches that fit or say why not."""

import subprocess
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import efhc_jax as efhc
from efhc_jax.engine.program import Samples, advance, initialise
from efhc_jax.engine.recording import record_audit, record_summary
from efhc_jax.engine.sharding import Layout
from efhc_jax.network.slots import Storage
from efhc_jax.runs import memory
from efhc_jax.runs.machine import free_memory, gigabytes
from efhc_jax.runs.memory import Estimate, choose_batch, estimate
from efhc_jax.runs.prepare import make_spec, prepare, stack

EXPERIMENT = efhc.Experiment(dataset="synthetic", iterations=20, eval_every=10)
NEEDS = Estimate(fixed=100, kept=8, stepping=2)


@pytest.fixture(scope="module")
def data():
    return efhc.load_dataset("synthetic")


@pytest.fixture
def free(monkeypatch):
    """Set the free memory so that the given number of runs of `NEEDS` fits on each accelerator."""

    def set_free(runs, accelerators=1):
        usable = NEEDS.in_process(runs, accelerators)
        monkeypatch.setattr(memory, "free_memory", lambda: usable / memory._SHARE + 1)

    monkeypatch.setattr(memory, "_CORE", 0)
    return set_free


def spec(accelerators=1, block=0):
    mesh = types.SimpleNamespace(size=accelerators, shape={"runs": accelerators})
    mesh = mesh if accelerators > 1 else None
    return types.SimpleNamespace(layout=Layout(mesh, block))


def test_the_estimate_is_near_what_the_compiler_says(data):
    runs = 8
    compiled_for = make_spec(EXPERIMENT, data, Layout(evaluated=1))
    values = stack([prepare(EXPERIMENT, data)] * runs, compiled_for.dynamics)
    states = initialise(compiled_for, values)
    train = Samples(jnp.asarray(data.train_images), jnp.asarray(data.train_labels))
    program = advance.lower(compiled_for, record_summary, 10, values, states, None, jnp.int32(0), train)
    found = program.compile().memory_analysis()
    real = (
        found.argument_size_in_bytes
        + found.output_size_in_bytes
        + found.temp_size_in_bytes
        - found.alias_size_in_bytes
    )
    needs = estimate([EXPERIMENT] * runs, data, compiled_for)
    assert real / 2 < needs.peak(runs) < real * 3
    assert needs.fixed >= data.train_images.nbytes


def needs_of(data, runs=1, record=record_summary, **changes):
    experiment = EXPERIMENT.replace(**changes)
    return estimate([experiment] * runs, data, make_spec(experiment, data), record)


def test_the_estimate_grows_with_what_takes_memory(data):
    base = needs_of(data)
    models = 10 * 7850 * 4
    assert needs_of(data, devices=20).peak(1) - base.peak(1) >= 4 * models
    assert needs_of(data, budgets=(1.0, 2.0)).kept - base.kept == 2 * models
    assert needs_of(data, iterations=12_000).host > base.host
    assert needs_of(data, runs=50).host > base.host, "the results of all runs are kept"
    assert needs_of(data, model="lenet5").kept > base.kept
    assert needs_of(data, model="lenet5").programs > base.programs
    assert needs_of(data, batch_size=32).in_block > base.in_block
    longest = max(base.stepping + base.in_block, base.evaluating)
    assert base.peak(20) - base.peak(19) == base.kept + longest


def test_an_audit_adds_the_graphs_of_every_iteration(data):
    plain, audited = (needs_of(data, devices=50, record=r) for r in (record_summary, record_audit))
    assert audited.host - plain.host >= 20 * 50**2
    assert audited.stepping - plain.stepping >= 10 * 50**2


def test_a_complete_graph_takes_a_slot_for_every_pair_and_a_star_does_not(data):
    complete, star = (needs_of(data, devices=2000, graph=graph) for graph in ("complete", "star"))
    assert complete.kept - star.kept > 1.9 * 2000**2
    assert complete.in_block - star.in_block > 10 * 2000**2
    assert dict(complete.parts)["network"] > 50 * dict(star.parts)["network"]


def test_runs_of_a_batch_have_the_slots_of_the_densest(data):
    sparse = EXPERIMENT.replace(devices=1000, connectivity=0.06, split="iid")
    dense = sparse.replace(connectivity=0.12)
    both = estimate([sparse, dense], data, make_spec(sparse, data))
    assert both.kept == estimate([dense] * 2, data, make_spec(dense, data)).kept
    assert both.kept > estimate([sparse] * 2, data, make_spec(sparse, data)).kept


def test_blocks_share_what_they_need_while_they_are_computed(data):
    experiment = EXPERIMENT.replace(model="lenet5", batch_size=32)
    whole = make_spec(experiment, data)
    in_blocks = make_spec(experiment, data, Layout(None, block=2))
    assert estimate([experiment], data, in_blocks).peak(8) < estimate([experiment], data, whole).peak(8)


def test_a_topology_of_ones_own_is_counted(data, monkeypatch):
    def wheel(settings, rng):
        rim = np.arange(1, settings.devices)
        spokes = np.stack([np.zeros_like(rim), rim], axis=1)
        return np.concatenate([spokes, np.stack([rim[:-1], rim[1:]], axis=1)])

    monkeypatch.setitem(efhc.GRAPHS, "wheel", wheel)
    wheeled, star = (needs_of(data, devices=1000, graph=graph) for graph in ("wheel", "star"))
    assert wheeled.kept == star.kept


@pytest.mark.parametrize(
    ("graph", "connectivity"),
    [
        ("ring", None),
        ("star", None),
        ("complete", None),
        ("grid", None),
        ("exponential", None),
        ("geometric", 0.12),
        ("erdos_renyi", 0.03),
        ("watts_strogatz", 0.5),
        ("barabasi_albert", None),
    ],
)
def test_slots_are_known_before_a_graph_is_drawn(data, graph, connectivity):
    changes = {} if connectivity is None else {"connectivity": connectivity}
    experiment = EXPERIMENT.replace(devices=700, graph=graph, split="iid", **changes)
    drawn = prepare(experiment, data).network
    foreseen = memory._network_of([experiment])
    rows, slots = drawn.adjacency.shape
    assert foreseen.storage.is_matrix == (drawn.neighbors is None)
    assert abs(foreseen.storage.slots - slots) <= max(8, 0.3 * slots)
    assert abs(foreseen.storage.rows - rows) <= 0.05 * rows
    assert 0.7 < foreseen.links / (int(drawn.adjacency.sum()) / 2) < 1.4


def test_the_slots_of_a_file_are_those_of_its_graph(data, tmp_path):
    path = tmp_path / "star.csv"
    path.write_text("".join(f"0,{other}\n" for other in range(1, 300)))
    experiment = EXPERIMENT.replace(devices=300, graph="file", graph_file=str(path), split="iid")
    assert memory._network_of([experiment])[:2] == (Storage(337, 8), 299)


def test_graphs_over_time_count_each(data, tmp_path):
    path = tmp_path / "times.csv"
    path.write_text("".join(f"{time},{time},{time + 1}\n" for time in range(9)))
    changes = {"dynamics": "trace", "graph_file": str(path), "allow_disconnected": True}
    assert needs_of(data, **changes).kept - needs_of(data).kept == 2 * 9 * 10 * 10


def test_numbers_in_64_bits_take_twice_as_much(data):
    plain = needs_of(data)
    with jax.enable_x64(True):
        doubled = needs_of(data)
    assert 1.8 < (doubled.kept - 4 * 2000) / (plain.kept - 4 * 2000) <= 2.1
    assert doubled.evaluating > 1.8 * plain.evaluating


@pytest.mark.parametrize(
    ("fits", "runs", "size"),
    [
        (1000, 1, 1),
        (1000, 5, 5),
        (1000, 20, 20),
        (1000, 64, 64),
        (1000, 65, 33),
        (1000, 500, 63),
        (40, 500, 39),
        (20, 500, 20),
        (1, 500, 1),
    ],
)
@pytest.mark.parametrize("block", [0, 16])
def test_as_few_batches_as_fit_and_all_of_one_size(free, fits, runs, block, size):
    free(fits)
    assert choose_batch(NEEDS, runs, spec(block=block)) == size


@pytest.mark.parametrize(
    ("fits", "runs", "size"), [(1000, 5, 8), (1000, 500, 64), (5, 500, 20), (1, 500, 4)]
)
def test_accelerators_share_a_batch_evenly(free, fits, runs, size):
    free(fits, 4)
    assert choose_batch(NEEDS, runs, spec(accelerators=4)) == size


def test_a_size_asked_for_stands_where_it_fits(free):
    free(30)
    assert choose_batch(NEEDS, 5, spec(), 30) == 30
    assert choose_batch(NEEDS, 500, spec(block=16), 7) == 7
    free(30, 4)
    assert choose_batch(NEEDS, 500, spec(accelerators=4), 12) == 12


@pytest.mark.parametrize(
    ("accelerators", "asked", "message"),
    [
        (1, 31, "runs_at_once=31: needs .* GB, but .* GB are free; try 30 or less"),
        (4, 124, "runs_at_once=124: needs .* try 120 or less"),
        (4, 10, "runs_at_once=10: cannot be divided over 4 CPU cores; give a multiple of 4"),
        (1, 0, "runs_at_once=0: .*give a (whole number of 1 or more|multiple of 1)"),
        (1, -3, "runs_at_once=-3: .*give a (whole number of 1 or more|multiple of 1)"),
    ],
)
def test_a_size_that_does_not_go_is_named_with_one_that_does(free, accelerators, asked, message):
    free(30, accelerators)
    with pytest.raises(efhc.ExperimentError, match=message):
        choose_batch(NEEDS, 500, spec(accelerators), asked)


@pytest.mark.parametrize("asked", [None, 1, 8])
@pytest.mark.parametrize("free_bytes", [0, 60, 109])
def test_when_nothing_fits_a_smaller_problem_is_the_advice(monkeypatch, asked, free_bytes):
    monkeypatch.setattr(memory, "free_memory", lambda: free_bytes)
    with pytest.raises(efhc.ExperimentError, match=r"devices and model: .*try fewer devices"):
        choose_batch(NEEDS, 500, spec(), asked)


def test_free_memory_is_that_of_the_machine_or_the_smallest_accelerator(monkeypatch):
    assert 2**20 < free_memory() < 2**50
    accelerators = [
        types.SimpleNamespace(memory_stats=lambda: {"bytes_limit": 900, "bytes_in_use": 100}),
        types.SimpleNamespace(memory_stats=lambda: {"bytes_limit": 900, "bytes_in_use": 300}),
    ]
    monkeypatch.setattr(jax, "local_devices", lambda: accelerators)
    assert free_memory() == 600


def test_one_run_after_the_other_is_the_advice_where_one_fits(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 150)
    monkeypatch.setattr(memory, "_CORE", 0)
    with pytest.raises(efhc.ExperimentError, match=r"on each of 2 CPU cores .* try runs_at_once=1"):
        choose_batch(NEEDS, 500, spec(accelerators=2))


def test_what_the_process_holds_already_is_not_needed_again(monkeypatch):
    needs = NEEDS._replace(runtime=1000)
    monkeypatch.setattr(memory, "free_memory", lambda: 120)
    monkeypatch.setattr(memory, "resident_memory", lambda: 10**6)
    assert choose_batch(needs, 1, spec()) == 1
    monkeypatch.setattr(memory, "resident_memory", lambda: 10)
    with pytest.raises(efhc.ExperimentError, match="a single run needs"):
        choose_batch(needs, 1, spec())


def test_a_sweep_that_cannot_fit_stops_before_it_starts(tiny, monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "free_memory", lambda: 1000)
    monkeypatch.setattr("efhc_jax.runs.simulation.advance", lambda *a: pytest.fail("it started"))
    with pytest.raises(efhc.ExperimentError, match=r"a single run needs .* GB"):
        efhc.sweep(EXPERIMENT.replace(devices=5, connectivity=0.6), tiny, seed=[0, 1])


@pytest.mark.parametrize("graph", ["complete"])
@pytest.mark.parametrize("starts", ["simulate", "sweep"])
def test_a_network_that_cannot_fit_is_refused_before_it_is_drawn(data, graph, starts, monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 20 * 10**9)
    monkeypatch.setattr("efhc_jax.runs.prepare.draw_links", lambda *_: pytest.fail("it was drawn"))
    experiment = EXPERIMENT.replace(devices=50_000, graph=graph, split="iid")
    message = r"devices=50000: a single run .*\(network .* GB.* are free; try fewer devices, or a graph"
    with pytest.raises(efhc.ExperimentError, match=message):
        if starts == "simulate":
            efhc.simulate(experiment, data)
        else:
            efhc.sweep(experiment, data, seed=[0, 1])


def test_results_that_cannot_fit_are_refused(data, monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 20 * 10**9)
    with pytest.raises(
        efhc.ExperimentError, match=r"iterations=\d+: a sweep of .* try fewer iterations"
    ):
        efhc.sweep(EXPERIMENT.replace(iterations=1_000_000), data, seed=range(1000))


# Peaks depend a little on the machine and its load; the table of the documentation, in which all are
# within 25 %, is from `python -m benchmarks.memory`.
@pytest.mark.parametrize(
    "command",
    [
        "run --dataset synthetic --iterations 20 --eval-every 10",
        "sweep --dataset synthetic --iterations 4 --eval-every 4 --split iid --devices 1500 "
        "--graph star --seeds 2 --policy zt",
    ],
)
def test_the_estimate_is_near_the_peak_of_a_process(command):
    code = "import sys; from benchmarks.memory import *; print(*measure_here(Setting('', sys.argv[1])))"
    arguments = [sys.executable, "-c", code, command]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    needed, peak = map(int, done.stdout.split())
    assert 0.6 < needed / peak < 1.4


def test_bytes_for_people():
    assert gigabytes(1_234_567_890) == "1.23 GB"
