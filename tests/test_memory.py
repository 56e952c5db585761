"""Memory: estimates near what the compiler says, and batches that fit or say why not."""

import types

import jax
import jax.numpy as jnp
import pytest

import efhc_jax as efhc
from efhc_jax import memory
from efhc_jax.layout import Layout
from efhc_jax.memory import Estimate, choose_batch, estimate, free_memory, gigabytes
from efhc_jax.program import Samples, advance, initialise, make_spec, record_summary
from efhc_jax.scenario import prepare, stack

EXPERIMENT = efhc.Experiment(dataset="synthetic", iterations=20, eval_every=10)
NEEDS = Estimate(fixed=100, per_run=10)


@pytest.fixture(scope="module")
def data():
    return efhc.load_dataset("synthetic")


@pytest.fixture
def free(monkeypatch):
    """Set how much is free, so that the given number of runs of `NEEDS` fits."""

    def set_free(runs):
        usable = NEEDS.peak(runs)
        monkeypatch.setattr(memory, "free_memory", lambda: usable / memory._SHARE + 1)

    return set_free


def spec(accelerators=1, block=0):
    mesh = types.SimpleNamespace(size=accelerators, shape={"runs": accelerators})
    mesh = mesh if accelerators > 1 else None
    return types.SimpleNamespace(layout=Layout(mesh, block))


def test_the_estimate_is_near_what_the_compiler_says(data):
    runs = 8
    compiled_for = make_spec(EXPERIMENT, data)
    hypers = stack([prepare(EXPERIMENT, data)] * runs)
    states = initialise(compiled_for, hypers)
    train = Samples(jnp.asarray(data.train_images), jnp.asarray(data.train_labels))
    program = advance.lower(compiled_for, record_summary, 10, hypers, states, None, jnp.int32(0), train)
    found = program.compile().memory_analysis()
    real = (
        found.argument_size_in_bytes
        + found.output_size_in_bytes
        + found.temp_size_in_bytes
        - found.alias_size_in_bytes
    )
    needs = estimate(EXPERIMENT, data, compiled_for)
    shared = data.train_images.nbytes
    assert real / 3 < runs * needs.per_run + shared < real * 3
    assert needs.peak(runs) >= real
    assert needs.fixed >= shared


def test_the_estimate_grows_with_what_takes_memory(data):
    def needs(**changes):
        experiment = EXPERIMENT.replace(**changes)
        return estimate(experiment, data, make_spec(experiment, data))

    base = needs()
    models = 10 * 7850 * 4
    assert needs(devices=20).per_run - base.per_run >= 6 * models
    assert needs(budgets=(1.0, 2.0)).per_run - base.per_run >= 2 * models
    assert needs(iterations=12_000).per_run > base.per_run
    assert needs(model="lenet5").per_run > base.per_run
    assert base.peak(3) - base.peak(2) == base.per_run


def test_numbers_in_64_bits_take_twice_as_much(data):
    per_run = estimate(EXPERIMENT, data, make_spec(EXPERIMENT, data)).per_run
    with jax.enable_x64(True):
        doubled = estimate(EXPERIMENT, data, make_spec(EXPERIMENT, data)).per_run
    assert 1.8 < doubled / per_run <= 2


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
    free(fits)
    assert choose_batch(NEEDS, runs, spec(accelerators=4)) == size


def test_a_size_asked_for_stands_where_it_fits(free):
    free(30)
    assert choose_batch(NEEDS, 5, spec(), 30) == 30
    assert choose_batch(NEEDS, 500, spec(block=16), 7) == 7
    assert choose_batch(NEEDS, 500, spec(accelerators=4), 12) == 12


@pytest.mark.parametrize(
    ("accelerators", "asked", "message"),
    [
        (1, 31, "batch=31: needs .* GB, but .* GB are free; try 30 or less"),
        (4, 124, "batch=124: needs .* try 120 or less"),
        (4, 10, "batch=10: cannot be divided over 4 CPU cores; give a multiple of 4"),
        (1, 0, "batch=0: .*give a (whole number of 1 or more|multiple of 1)"),
        (1, -3, "batch=-3: .*give a (whole number of 1 or more|multiple of 1)"),
    ],
)
def test_a_size_that_does_not_go_is_named_with_one_that_does(free, accelerators, asked, message):
    free(30)
    with pytest.raises(efhc.ExperimentError, match=message):
        choose_batch(NEEDS, 500, spec(accelerators), asked)


@pytest.mark.parametrize("asked", [None, 1, 8])
@pytest.mark.parametrize("free_bytes", [0, 60, 120])
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


def test_a_sweep_that_cannot_fit_stops_before_it_starts(tiny, monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "free_memory", lambda: 1000)
    monkeypatch.setattr("efhc_jax.simulation.advance", lambda *a: pytest.fail("it started"))
    with pytest.raises(efhc.ExperimentError, match=r"a single run needs .* GB"):
        efhc.sweep(EXPERIMENT.replace(devices=5, connectivity=0.6), tiny, seed=[0, 1])


def test_bytes_for_people():
    assert gigabytes(1_234_567_890) == "1.23 GB"
