"""Distribution of a batch of runs over accelerators, and in blocks on each of them.

Runs with many devices are divided as well: each accelerator then holds the models of some devices, that
is, rows of W. Computations per device stay with their row; only averaging needs other rows.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

_CACHE_BYTES = 10 * 2**20  # of a CPU's last-level cache, for the active blocks of runs
_EVALUATED = 16  # runs evaluated together, except on a CPU, whose cache has room for one
_ROWS_FROM = 1000  # devices from which a single run is distributed over several accelerators


class Layout(NamedTuple):
    """Placement of runs on accelerators.

    Attributes:
        mesh: the accelerators, along an axis "runs", and along an axis "rows" if the devices of each
            run are distributed as well; None for a single accelerator.
        block: number of runs advanced together on one accelerator; 0 for all.
        devices: m of the runs if their devices are distributed, otherwise 0.
        evaluated: largest number of runs evaluated together on one accelerator.
    """

    mesh: Mesh | None = None
    block: int = 0
    devices: int = 0
    evaluated: int = _EVALUATED

    @property
    def accelerators(self) -> int:
        """Number of accelerators that share a batch."""
        return 1 if self.mesh is None else self.mesh.size

    @property
    def teams(self) -> int:
        """Number of accelerators, or groups of accelerators, with their own runs."""
        return 1 if self.mesh is None else self.mesh.shape["runs"]

    @property
    def rows(self) -> Mesh | None:
        """The accelerators, if the devices of each run are distributed over them."""
        return self.mesh if self.devices else None

    @property
    def for_evaluation(self) -> Layout:
        """The same with blocks of the runs that are evaluated together, which divide its own blocks."""
        if not self.block and self.evaluated > 1:  # may not divide the number of runs
            return self
        return self._replace(block=math.gcd(self.block, self.evaluated))

    def fitted(self, runs: int) -> tuple[Layout, int]:
        """A layout with equal blocks for a batch of at least `runs`, and the size of that batch."""
        each = math.ceil(runs / self.teams)
        blocks = math.ceil(each / self.block) if self.block else 1
        block = math.ceil(each / blocks)
        return self._replace(block=block), blocks * block * self.teams


def hardware(count: int, platform: str | None = None) -> str:
    """Description of a number of accelerators: on a CPU they are its cores, or the CPUs of a job.

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
    """All accelerators; on a CPU, with blocks whose models fit the cache.

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
    return Layout(mesh, max(1, min(16, share // bytes_of_run)), evaluated=1)


def choose_layout_of_one(devices: int) -> Layout:
    """The layout of a single run: one accelerator, or several if its devices divide evenly."""
    accelerators = jax.devices()
    if not _rows_are_spread(accelerators, devices):
        return SINGLE
    return by_rows(accelerators[: math.gcd(devices, len(accelerators))], devices)


def _rows_are_spread(accelerators: Sequence[Any], devices: int) -> bool:
    """Whether to distribute devices: if there are many, and several accelerators that are no CPUs."""
    several = len(accelerators) > 1 and accelerators[0].platform != "cpu"
    return several and devices >= _ROWS_FROM


def by_rows(accelerators: Sequence[Any], devices: int) -> Layout:
    """A layout with the devices of each run distributed over accelerators that divide them evenly."""
    rows = math.gcd(devices, len(accelerators))
    mesh = Mesh(np.array(accelerators).reshape(-1, rows), ("runs", "rows"))
    return Layout(mesh, devices=devices)


def spread(layout: Layout, one: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a batch from a function of one run: `f(runs, shared)`.

    `runs` is a tuple of arguments whose leaves have the runs along the first axis; `shared` is a tuple
    of arguments that all runs share.
    """

    def on_each(runs: tuple[Any, ...], shared: tuple[Any, ...] = ()) -> Any:
        batched = jax.vmap(lambda runs: one(*runs, *shared))
        count = len(jax.tree.leaves(runs)[0])
        block = layout.block or count
        if block >= count:
            return batched(runs)
        if count % block:
            raise ValueError(f"a batch of {count} runs is not a multiple of the block size {block}")
        cut = jax.tree.map(lambda leaf: leaf.reshape(count // block, block, *leaf.shape[1:]), runs)
        blocks = jax.lax.map(batched, cut)
        return jax.tree.map(lambda leaf: leaf.reshape(count, *leaf.shape[2:]), blocks)

    if layout.mesh is None:
        return on_each
    if layout.rows is not None:
        return functools.partial(_by_rows, layout, one)
    return functools.partial(_on_mesh, layout.mesh, on_each)


def _by_rows(layout: Layout, one: Callable[..., Any], runs: Any, shared: Any = ()) -> Any:
    """The compiler partitions the program along the devices, as its arguments are."""
    found = jax.vmap(lambda runs: one(*runs, *shared), spmd_axis_name="runs")(runs)
    return jax.tree.map(
        lambda leaf: jax.lax.with_sharding_constraint(leaf, sharding_of(layout, leaf)), found
    )


def _on_mesh(mesh: Mesh, on_each: Callable[..., Any], runs: Any, shared: Any = ()) -> Any:
    sharded = jax.shard_map(
        on_each, mesh=mesh, in_specs=(P("runs"), P()), out_specs=P("runs"), check_vma=False
    )
    return sharded(runs, shared)


def on_own_rows(
    mesh: Mesh | None, function: Callable[..., Any], *, shared: int = 0
) -> Callable[..., Any]:
    """A function of arrays (device, …) that each accelerator applies to its own devices.

    Args:
        mesh: `Layout.rows`.
        function: the function to apply.
        shared: number of last arguments that are replicated on all accelerators.
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
    """Stacked arrays, placed on the accelerators of their runs."""
    if layout.mesh is None:
        return jax.device_put(tree)
    return jax.tree.map(lambda leaf: _place(sharding_of(layout, leaf), leaf), tree)


def sharding_of(layout: Layout, leaf: Any) -> NamedSharding:
    """Sharding of an array with the runs along its first axis."""
    assert layout.mesh is not None
    for axis in (1, 2):  # 2 for models per budget
        if layout.devices and leaf.ndim > axis and leaf.shape[axis] == layout.devices:
            return NamedSharding(layout.mesh, P("runs", *[None] * (axis - 1), "rows"))
    return NamedSharding(layout.mesh, P("runs"))


def place_shared(layout: Layout, tree: Any) -> Any:
    """Arrays that all runs share, replicated on every accelerator."""
    if layout.mesh is None:
        return jax.device_put(tree)
    return _place(NamedSharding(layout.mesh, P()), tree)


def _place(sharding: NamedSharding, tree: Any) -> Any:
    """Like `device_put`, but every process of a job contributes only its own part."""
    if jax.process_count() == 1:
        return jax.device_put(tree, sharding)

    def put(leaf: Any) -> jax.Array:
        if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
            return jax.device_put(leaf, sharding)  # already distributed over the processes
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            data = put(jax.random.key_data(leaf))
            return jax.jit(jax.random.wrap_key_data, out_shardings=sharding)(data)
        host = np.asarray(leaf)
        return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index])

    return jax.tree.map(put, tree)


def to_host(tree: Any) -> Any:
    """The arrays on the host, complete on every process of a job."""
    if jax.process_count() == 1:
        return jax.device_get(tree)
    from jax.experimental import multihost_utils

    return multihost_utils.process_allgather(tree, tiled=True)
