"""Layouts decide where runs are computed, never what comes out."""

import subprocess
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh

from efhc_jax.engine.sharding import (
    SINGLE,
    Layout,
    choose_layout,
    choose_layout_of_one,
    place_runs,
    place_shared,
    spread,
    to_host,
)

MESH = Mesh(np.array(jax.devices()[:1]), ("runs",))
RUNS = (
    {"matrix": jnp.arange(24.0).reshape(6, 2, 2), "number": jnp.arange(6)},
    jax.random.split(jax.random.key(0), 6),
)
SHARED = (jnp.array([2.0, 3.0]), jnp.int32(7))


def mesh_of(accelerators):
    if accelerators == 1:
        return None
    return types.SimpleNamespace(size=accelerators, shape={"runs": accelerators})


def one(values, key, vector, number):
    assert values["matrix"].shape == (2, 2), "one run at a time"
    noise = jax.random.uniform(key, (2,))
    return values["matrix"] @ (vector + noise), {"sum": values["number"] + number}


@pytest.mark.parametrize("mesh", [None, MESH])
@pytest.mark.parametrize("block", [0, 1, 2, 3, 6, 16])
def test_blocks_and_meshes_give_what_plain_vmap_gives(mesh, block):
    expected = jax.vmap(one, (0, 0, None, None))(*RUNS, *SHARED)
    found = jax.jit(spread(Layout(mesh, block), one))(RUNS, SHARED)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_a_block_is_what_is_computed_together():
    runs = (jnp.arange(6),)
    blocks = str(jax.make_jaxpr(spread(Layout(block=2), lambda number: number * 2))(runs))
    assert "length=3" in blocks
    assert "i32[2] = mul" in blocks
    whole = str(jax.make_jaxpr(spread(SINGLE, lambda number: number * 2))(runs))
    assert "scan" not in whole
    assert "i32[6] = mul" in whole


def test_blocks_may_hold_arrays_without_entries():
    nothing = jnp.zeros((6, 0))
    found = spread(Layout(block=3), lambda number, empty: (number + 1, empty))(
        (RUNS[0]["number"], nothing)
    )
    np.testing.assert_array_equal(found[0], np.arange(1, 7))
    assert found[1].shape == (6, 0)


def test_arguments_that_no_run_has_stay_none():
    found = spread(Layout(block=3), lambda number, spending: (number, spending))((jnp.arange(6), None))
    assert found[1] is None


@pytest.mark.parametrize("mesh", [None, MESH])
def test_blocks_must_divide_the_batch(mesh):
    with pytest.raises(ValueError, match="batch of 6 runs is not a multiple of the block size 4"):
        spread(Layout(mesh, 4), one)(RUNS, SHARED)


@pytest.mark.parametrize(
    ("devices", "parameters", "block"),
    [(10, 7850, 8), (10, 61_706, 1), (5, 40, 16), (100, 1_000_000, 1)],
)
def test_blocks_stay_in_a_cpu_cache(devices, parameters, block):
    assert choose_layout(devices, parameters) == Layout(None, block, evaluated=1)


@pytest.mark.parametrize(
    ("block", "evaluated", "together"),
    [(8, 1, 1), (64, 16, 16), (24, 16, 8), (5, 16, 1), (0, 16, 0), (0, 1, 1)],
)
def test_runs_are_evaluated_in_parts_of_their_blocks(block, evaluated, together):
    assert Layout(None, block, evaluated=evaluated).for_evaluation.block == together


@pytest.mark.parametrize("accelerators", [1, 2, 8])
@pytest.mark.parametrize("block", [0, 1, 3, 16])
@pytest.mark.parametrize("runs", [1, 2, 7, 16, 17, 61, 64])
def test_a_batch_is_filled_up_to_even_blocks(accelerators, block, runs):
    mesh = (
        types.SimpleNamespace(size=accelerators, shape={"runs": accelerators})
        if accelerators > 1
        else None
    )
    layout, whole = Layout(mesh, block).fitted(runs)
    each = whole // accelerators
    blocks = each // layout.block
    assert whole == accelerators * layout.block * blocks
    assert runs <= whole < runs + accelerators * blocks
    assert layout.mesh is mesh
    if block:
        assert layout.block <= block
        assert blocks == -(-each // block), "no more blocks than are needed"
    else:
        assert blocks == 1


def test_other_accelerators_take_everything_at_once(monkeypatch):
    gpu = types.SimpleNamespace(platform="gpu")
    monkeypatch.setattr(jax, "devices", lambda: [gpu])
    assert choose_layout(10, 7850) == SINGLE


def test_a_layout_counts_its_accelerators():
    assert SINGLE.accelerators == 1
    assert Layout(MESH).accelerators == 1
    assert Layout(mesh_of(2)).accelerators == 2
    assert Layout(mesh_of(2)).teams == 2
    rows = types.SimpleNamespace(size=8, shape={"runs": 2, "rows": 4})
    assert Layout(rows, devices=80).accelerators == 8
    assert Layout(rows, devices=80).teams == 2


@pytest.mark.parametrize(("devices", "rows"), [(8000, 8), (10_002, 2), (1001, 1)])
def test_many_devices_are_spread_over_accelerators_that_divide_them(monkeypatch, devices, rows):
    made = []
    monkeypatch.setattr(jax, "devices", lambda: [types.SimpleNamespace(platform="gpu")] * 8)
    monkeypatch.setattr(
        "efhc_jax.engine.sharding.Mesh", lambda array, axes: made.append(array.shape) or MESH
    )
    assert choose_layout(devices, 7850).devices == devices
    assert choose_layout_of_one(devices).devices == devices
    assert made == [(8 // rows, rows), (1, rows)]


def test_few_devices_are_not_spread():
    assert choose_layout_of_one(999) == SINGLE


@pytest.mark.parametrize("place", [place_runs, place_shared])
@pytest.mark.parametrize("mesh", [None, MESH])
def test_what_is_placed_can_be_fetched(place, mesh):
    tree = {"numbers": np.arange(6), "flags": np.array([True, False] * 3)}
    placed = place(Layout(mesh), tree)
    assert all(isinstance(leaf, jax.Array) for leaf in placed.values())
    back = to_host(placed)
    for name, array in tree.items():
        assert isinstance(back[name], np.ndarray)
        np.testing.assert_array_equal(back[name], array)


BY_ROWS = """
import jax
jax.config.update("jax_num_cpu_devices", 8)
import numpy as np
import efhc_jax as efhc
from jax.sharding import Mesh
from efhc_jax.engine.sharding import Layout, place_runs
from efhc_jax.engine.program import initialise, laid_out
from efhc_jax.runs.prepare import make_spec
from efhc_jax.runs.prepare import prepare, stack
from efhc_jax.runs.simulation import evaluation_times, run_batch

data = efhc.load_dataset("synthetic")
base = efhc.Experiment(dataset="synthetic", devices=80, graph="ring", dynamics="failures")
spec = make_spec(base, data)
each = [prepare(base.replace(policy=policy), data) for policy in ("efhc", "zt")]
values = stack(each, spec.dynamics)
assert values.network.neighbors is not None, "the test is about lists of neighbours"
times = evaluation_times(base.replace(iterations=12, eval_every=6))
expected = run_batch(spec, values, data, times)
for shape in ((1, 8), (2, 4)):
    mesh = Mesh(np.array(jax.devices()).reshape(shape), ("runs", "rows"))
    spread = laid_out(spec, Layout(mesh, devices=80))
    weights = initialise(spread, place_runs(spread.layout, values)).state.weights
    assert weights.addressable_shards[0].data.shape[:2] == (2 // shape[0], 80 // shape[1])
    for one, other in zip(expected, run_batch(spread, values, data, times), strict=True):
        for name, array in (one.evaluations | one.steps).items():
            found = (other.evaluations | other.steps)[name]
            np.testing.assert_allclose(found, array, rtol=1e-4, atol=1e-5, err_msg=name)
print("agree")
"""


def test_devices_spread_over_8_accelerators_give_what_one_gives():
    done = subprocess.run(
        [sys.executable, "-c", BY_ROWS], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.stdout.endswith("agree\n"), done.stderr
