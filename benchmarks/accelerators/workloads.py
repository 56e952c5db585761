"""The programs that are compiled for accelerators: those of `efhc run` and `efhc sweep`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from benchmarks.accelerators.targets import Target

ITERATIONS = 100  # of a compiled call, as between two evaluations
_SAMPLES = 60_000
_DRAWN = 64  # devices up to which the graph is the paper's
_TEST_IMAGES = 10_000


class Work(NamedTuple):
    """A program.

    Attributes:
        model: SVM, LeNet5, or the CNN of a user.
        runs: number of runs in a batch; 1 is the program of `efhc run`.
        batch_size: samples of a mini-batch.
        devices: m.
        evaluates: the evaluation instead of the iterations.
        accelerators: that share the work.
        by_rows: whether they share the devices of each run, instead of the runs.
        method: of the experiment.
    """

    model: str = "svm"
    runs: int = 1
    batch_size: int = 1
    devices: int = 10
    evaluates: bool = False
    accelerators: int = 1
    by_rows: bool = False
    method: str = "gossip"

    @property
    def name(self) -> str:
        """The work in words."""
        model = {"svm": "SVM", "lenet5": "LeNet5", "cnn": "CNN"}[self.model]
        parts = [f"{model}, {'1 run' if self.runs == 1 else f'{self.runs} runs'}"]
        if self.batch_size > 1:
            parts.append(f"batch {self.batch_size}")
        if self.devices != 10:
            parts.append(f"{self.devices:,} devices")
        if self.method != "gossip":
            parts.append(self.method)
        if self.evaluates:
            parts.append("evaluation")
        if self.accelerators > 1:
            parts.append(f"{'rows' if self.by_rows else 'runs'} over {self.accelerators}")
        return ", ".join(parts)


class Lowered(NamedTuple):
    """A program, lowered for accelerators that need not be there."""

    code: Any
    parameters: int  # n of its model
    arrays: int  # like W, that the state of its method has


def lowered(work: Work, target: Target) -> Lowered:
    """The program of some work."""
    import jax
    import jax.numpy as jnp

    from benchmarks.accelerators.compilers import devices_of
    from benchmarks.data import random_images
    from benchmarks.ours import with_links
    from efhc_jax.engine.evaluation import evaluate
    from efhc_jax.engine.program import Samples, advance, initialise
    from efhc_jax.engine.recording import record_summary
    from efhc_jax.runs.prepare import make_spec, prepare

    accelerators = devices_of(target, work.accelerators)
    layout = _layout(work, accelerators)
    data = random_images(28, max(_SAMPLES, 2 * work.devices))
    experiment = experiment_of(work)
    spec = make_spec(experiment, data, layout)
    run = prepare(experiment, data)
    links = links_of(work)
    if links is not None:
        run = with_links(run, links, work.devices)
    runs = _shapes(layout, accelerators, run, work.runs)
    progress = jax.eval_shape(lambda runs: initialise(spec, runs), runs)
    progress = _shapes(layout, accelerators, progress)
    images = _TEST_IMAGES if work.evaluates else len(data.train_labels)
    samples = _shapes(
        layout,
        accelerators,
        Samples(np.empty((images, 28, 28), np.uint8), np.empty(images, np.int32)),
        shared=True,
    )
    first = _shapes(layout, accelerators, jnp.int32(0), shared=True)
    if work.evaluates:
        traced = evaluate.trace(spec, progress.state, samples)
    else:
        traced = advance.trace(spec, record_summary, ITERATIONS, runs, progress, None, first, samples)
    size = spec.rules.model.size
    models = work.runs * work.devices * size
    arrays = sum(leaf.size == models for leaf in jax.tree.leaves(progress.state))
    return Lowered(traced.lower(lowering_platforms=(target.platform,)), size, arrays)


def experiment_of(work: Work) -> Any:
    """The experiment: the paper's, or a sparse graph if there are many devices."""
    from benchmarks.cnn import cnn
    from efhc_jax.experiment.experiment import Experiment
    from efhc_jax.models import MODELS

    MODELS["cnn"] = cnn
    return Experiment(
        model=work.model,
        batch_size=work.batch_size,
        devices=work.devices,
        method=work.method,
        **({"graph": "ring", "split": "iid"} if work.devices > _DRAWN else {}),
    )


def links_of(work: Work) -> np.ndarray | None:
    """The links of a sparse graph of mean degree 10 if there are many devices."""
    from benchmarks.suites.scaling import random_links

    return random_links(work.devices) if work.devices > _DRAWN else None


def _layout(work: Work, accelerators: list[Any]) -> Any:
    from jax.sharding import Mesh

    from efhc_jax.engine.sharding import Layout, by_rows

    if work.accelerators == 1:
        return Layout()
    if work.by_rows:
        return by_rows(accelerators, work.devices)
    return Layout(Mesh(np.array(accelerators), ("runs",)))


def _shapes(
    layout: Any, accelerators: list[Any], tree: Any, runs: int = 0, *, shared: bool = False
) -> Any:
    """The arrays as shapes on the accelerators, with so many runs along a new first axis, if any."""
    import jax
    from jax.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding

    from efhc_jax.engine.sharding import sharding_of

    def shape(leaf: Any) -> jax.ShapeDtypeStruct:
        whole = (runs, *leaf.shape) if runs else leaf.shape
        plain = jax.ShapeDtypeStruct(whole, leaf.dtype)
        if layout.mesh is None:
            where: Any = SingleDeviceSharding(accelerators[0])
        elif shared:
            where = NamedSharding(layout.mesh, PartitionSpec())
        else:
            where = sharding_of(layout, plain)
        return jax.ShapeDtypeStruct(whole, leaf.dtype, sharding=where)

    return jax.tree.map(shape, tree)
