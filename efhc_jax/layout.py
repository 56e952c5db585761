"""How the runs of a batch are spread: over accelerators, and in blocks on each of them.

Runs with many devices are cut as well: each accelerator then holds the models of some devices, the rows
of W. What is computed for each device stays where its row is; only averaging looks at other rows.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

_CACHE_BYTES = 10 * 2**20  # what the runs of all blocks at work may occupy of a CPU's last cache
_ROWS_FROM = 1000  # devices; a run with so many is spread over several accelerators itself


class Layout(NamedTuple):
    """Where runs are computed.

    Attributes:
        mesh: the accelerators to spread them over, along an axis "runs", and along an axis "rows" where
            the devices of each run are spread as well; None is a single accelerator.
        block: how many are advanced together on one accelerator; 0 is all.
        devices: m of the runs, where their devices are spread; otherwise 0.
    """

    mesh: Mesh | None = None
    block: int = 0
    devices: int = 0

    @property
    def accelerators(self) -> int:
        """Number of accelerators that share a batch."""
        return 1 if self.mesh is None else self.mesh.size

    @property
    def teams(self) -> int:
        """Number of accelerators, or of groups of them, that have runs of their own."""
        return 1 if self.mesh is None else self.mesh.shape["runs"]

    @property
    def rows(self) -> Mesh | None:
        """The accelerators, where the devices of each run are spread over them."""
        return self.mesh if self.devices else None

    def fitted(self, runs: int) -> tuple[Layout, int]:
        """A layout with even blocks for a batch of at least `runs`, and how many it then has."""
        each = math.ceil(runs / self.teams)
        blocks = math.ceil(each / self.block) if self.block else 1
        block = math.ceil(each / blocks)
        return self._replace(block=block), blocks * block * self.teams


def hardware(count: int, platform: str | None = None) -> str:
    """What so many accelerators are, in words: on a CPU they are its cores, or the CPUs of a job.

    Example:
        >>> hardware(2, "cpu"), hardware(2, "gpu"), hardware(1, "cpu")
        ('2 CPU cores', '2 accelerators', 'cpu')
    """
    platform = platform or jax.devices()[0].platform
    if count == 1:
        return platform
    if platform != "cpu":
        return f"{count} accelerators"
    return f"{count} CPUs" if jax.process_count() > 1 else f"{count} CPU cores"


SINGLE = Layout()  # everything at once on one accelerator


def choose_layout(devices: int, parameters: int) -> Layout:
    """All accelerators there are; on a CPU, blocks whose models stay in the cache.

    Args:
        devices: m of the runs.
        parameters: n of their model.
    """
    accelerators = jax.devices()
    if _rows_are_spread(accelerators, devices):
        return by_rows(accelerators, devices)
    mesh = Mesh(np.array(accelerators), ("runs",)) if len(accelerators) > 1 else None
    if accelerators[0].platform != "cpu":
        return Layout(mesh)
    bytes_of_run = 4 * devices * parameters * 4  # W, Ŵ, G and the new W
    share = _CACHE_BYTES // len(jax.local_devices())
    return Layout(mesh, max(1, min(16, share // bytes_of_run)))


def choose_layout_of_one(devices: int) -> Layout:
    """A single run: on one accelerator, or over those that its devices spread evenly over."""
    accelerators = jax.devices()
    if not _rows_are_spread(accelerators, devices):
        return SINGLE
    return by_rows(accelerators[: math.gcd(devices, len(accelerators))], devices)


def _rows_are_spread(accelerators: list[jax.Device], devices: int) -> bool:
    """Many devices on several accelerators; the cores of a CPU share the work better as one."""
    several = len(accelerators) > 1 and accelerators[0].platform != "cpu"
    return several and devices >= _ROWS_FROM


def by_rows(accelerators: list[jax.Device], devices: int) -> Layout:
    """Runs whose devices are spread over as many of the accelerators as divide them evenly."""
    rows = math.gcd(devices, len(accelerators))
    mesh = Mesh(np.array(accelerators).reshape(-1, rows), ("runs", "rows"))
    return Layout(mesh, devices=devices)


def spread(layout: Layout, one: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a function of one run into one of a batch: `f(runs, shared)`.

    `runs` is a tuple of arguments whose leaves have the runs along the first axis; `shared` are the
    arguments that all of them see.
    """

    def on_each(runs: tuple[Any, ...], shared: tuple[Any, ...] = ()) -> Any:
        batched = jax.vmap(lambda runs: one(*runs, *shared))
        count = len(jax.tree.leaves(runs)[0])
        block = layout.block or count
        if block >= count:
            return batched(runs)
        if count % block:
            raise ValueError(f"a batch of {count} runs is not made of blocks of {block}")
        cut = jax.tree.map(lambda leaf: leaf.reshape(count // block, block, *leaf.shape[1:]), runs)
        blocks = jax.lax.map(batched, cut)
        return jax.tree.map(lambda leaf: leaf.reshape(count, *leaf.shape[2:]), blocks)

    if layout.mesh is None:
        return on_each
    if layout.rows is not None:
        return functools.partial(_by_rows, layout, one)
    return functools.partial(_on_mesh, layout.mesh, on_each)


def _by_rows(layout: Layout, one: Callable[..., Any], runs: Any, shared: Any = ()) -> Any:
    """The compiler cuts the program along the devices, as its arguments are."""
    found = jax.vmap(lambda runs: one(*runs, *shared), spmd_axis_name="runs")(runs)
    return jax.tree.map(
        lambda leaf: jax.lax.with_sharding_constraint(leaf, _sharding(layout, leaf)), found
    )


def _on_mesh(mesh: Mesh, on_each: Callable[..., Any], runs: Any, shared: Any = ()) -> Any:
    sharded = jax.shard_map(
        on_each, mesh=mesh, in_specs=(P("runs"), P()), out_specs=P("runs"), check_vma=False
    )
    return sharded(runs, shared)


def on_own_rows(
    mesh: Mesh | None, function: Callable[..., Any], *, shared: int = 0
) -> Callable[..., Any]:
    """A function of arrays (device, …) that each accelerator applies to the devices that it holds.

    Args:
        mesh: `Layout.rows`.
        function: what to apply.
        shared: how many of its last arguments are seen in full by all accelerators.
    """
    if mesh is None:
        return function

    def apply(*arguments: Any) -> Any:
        specs = [P("rows")] * (len(arguments) - shared) + [P()] * shared
        return jax.shard_map(
            function, mesh=mesh, in_specs=tuple(specs), out_specs=P("rows"), check_vma=False
        )(*arguments)

    return apply


def place_runs(layout: Layout, tree: Any) -> Any:
    """Put stacked arrays where their runs will be computed."""
    if layout.mesh is None:
        return jax.device_put(tree)
    return jax.tree.map(lambda leaf: _place(_sharding(layout, leaf), leaf), tree)


def _sharding(layout: Layout, leaf: Any) -> NamedSharding:
    """Where an array with the runs along its first axis goes."""
    assert layout.mesh is not None
    for axis in (1, 2):  # the second where there are models for each budget
        if layout.devices and leaf.ndim > axis and leaf.shape[axis] == layout.devices:
            return NamedSharding(layout.mesh, P("runs", *[None] * (axis - 1), "rows"))
    return NamedSharding(layout.mesh, P("runs"))


def place_shared(layout: Layout, tree: Any) -> Any:
    """Put arrays that all runs see on every accelerator."""
    if layout.mesh is None:
        return jax.device_put(tree)
    return _place(NamedSharding(layout.mesh, P()), tree)


def _place(sharding: NamedSharding, tree: Any) -> Any:
    """Like `device_put`, but every process of a job contributes only what it holds itself."""
    if jax.process_count() == 1:
        return jax.device_put(tree, sharding)

    def put(leaf: Any) -> jax.Array:
        if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
            return jax.device_put(leaf, sharding)  # spread over the processes already
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            data = put(jax.random.key_data(leaf))
            return jax.jit(jax.random.wrap_key_data, out_shardings=sharding)(data)
        host = np.asarray(leaf)
        return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index])

    return jax.tree.map(put, tree)


def fetch(tree: Any) -> Any:
    """The arrays on the host, in full on every process of a job."""
    if jax.process_count() == 1:
        return jax.device_get(tree)
    from jax.experimental import multihost_utils

    return multihost_utils.process_allgather(tree, tiled=True)
