"""What many tests share: small experiments, which with the same shapes also share compiled programs."""

import numpy as np
import pytest

import efhc_jax as efhc
import oracle
from efhc_jax.data import Dataset
from efhc_jax.experiment.naming import StoredName
from efhc_jax.randomness.draws import draw_coins
from efhc_jax.runs.prepare import prepare
from efhc_jax.runs.simulation import Control
from efhc_jax.storage.checkpoints import Checkpoints

SMALL = efhc.Experiment(
    devices=5,
    connectivity=0.6,
    iterations=20,
    eval_every=10,
    batch_size=2,
    r=4000.0,
    learning_rate=0.5,
)

QUADRATIC = efhc.Experiment(
    model="quadratic",
    dataset="synthetic",
    devices=6,
    connectivity=0.6,
    iterations=40,
    eval_every=10,
    r=200.0,
    learning_rate=0.05,
)


def stopped_and_resumed(experiment, data, folder):
    """The result of a run that is stopped after a few chunks and resumes, and the checkpoint between."""
    asked = iter([False, False, False, True])
    checkpoints = Checkpoints(folder / "checkpoint", 0.0)
    with pytest.raises(KeyboardInterrupt):
        efhc.simulate(
            experiment, data, control=Control(should_stop=lambda: next(asked), checkpoints=checkpoints)
        )
    saved = checkpoints.newest()
    return efhc.simulate(experiment, data, control=Control(checkpoints=checkpoints)), saved


def named_after(experiment, name):
    """The experiment as a result has it that was made with data of this name."""
    return experiment.inherit({"dataset": StoredName(name)})


def overlapping(samples):
    """Images of four classes that no line separates, so that the logistic problem has a minimiser."""
    rng = np.random.default_rng(0)
    labels = np.tile(np.arange(4), samples // 4).astype(np.int32)
    images = rng.integers(0, 256, (samples, 2, 2)).astype(np.uint8)
    images[np.arange(samples), labels // 2, labels % 2] |= 128
    return Dataset("overlapping", images, labels, images, labels)


def schedule_of(e, setting, scale):
    """A schedule by its formula, as a function of k."""
    if e[setting] == "constant":
        return lambda k: scale
    if e[setting] == "cosine":
        final = e[f"{setting}.final"]
        wave = lambda k: (1 + np.cos(np.pi * k / e.iterations)) / 2  # noqa: E731
        return lambda k: scale * (final + (1 - final) * wave(k))
    offset, exponent = e[f"{setting}.offset"], e[f"{setting}.exponent"]
    return lambda k: scale / (offset + k) ** exponent


def oracle_of(experiment, data, run, training=None):
    """The iterations of a traced run by the oracle, from the models, graphs and samples of the run."""
    key = prepare(experiment, data).key
    e = experiment
    return oracle.simulate(
        weights=run.weights.values[0],
        adjacency=run.adjacency.values,
        bandwidth=run.bandwidth.values,
        samples=run["sample"].values,
        images=data.train_images,
        labels=data.train_labels,
        model=e.model,
        policy=e.policy,
        r=e.r,
        norm_order=e.norm_order,
        learning_rate=schedule_of(e, "learning_rate_schedule", e.learning_rate),
        threshold=None
        if e.threshold_schedule == "learning_rate"
        else schedule_of(e, "threshold_schedule", 1.0),
        adaptive=(e["policy.rate"], e["policy.gain"]),
        coins=np.array([draw_coins(key, k, e.devices) for k in range(e.iterations)]),
        classes=data.classes,
        training=training,
    )
