"""The compiled program: a batch of runs, started, advanced by many iterations, and evaluated.

Every function here takes runs stacked along the first axis, and is compiled once per `Spec` and shape;
the values of the runs and the data are arguments.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from efhc_jax.data import Dataset
from efhc_jax.engine.budgets import Purse, spend
from efhc_jax.engine.objective import global_loss, make_objective
from efhc_jax.engine.sharding import SINGLE, Layout, on_own_rows, spread
from efhc_jax.engine.step import Info, Inputs, Rules, State, parameters_of, start, step
from efhc_jax.experiment.experiment import Experiment
from efhc_jax.models import make_model
from efhc_jax.models.base import Model, logits_of_all, normalise
from efhc_jax.network.dynamics import DYNAMICS, Dynamics
from efhc_jax.network.slots import as_matrix
from efhc_jax.policies.checks import compiled_policies
from efhc_jax.randomness.draws import draw_coins, draw_models, draw_samples
from efhc_jax.runs.prepare import Hyper

_UNROLL = 2  # two steps alternate between two buffers of W; a single one would copy it


class Spec(NamedTuple):
    """Static settings, which determine shapes and code and therefore a compilation."""

    rules: Rules
    devices: int
    batch_size: int
    dynamics: Dynamics
    layout: Layout


class Samples(NamedTuple):
    """Images and labels, on the accelerator."""

    images: Any  # uint8 (sample, height, width)
    labels: Any  # int32 (sample,)


class Moment(NamedTuple):
    """Everything about one iteration, from which a recorder selects."""

    neighbors: Array | None  # (device, slot), the devices in the slots; None for a matrix
    sample: Array  # (device, batch), indices into the training set
    inputs: Inputs
    info: Info
    after: State


Recorder = Callable[[Moment], dict[str, Array]]


def make_spec(
    experiment: Experiment,
    dataset: Dataset,
    layout: Layout = SINGLE,
    policies: Collection[str] | None = None,
) -> Spec:
    """The static part of an experiment.

    Args:
        experiment: a run, or the first of several that share the static part.
        dataset: the data.
        layout: the placement on accelerators.
        policies: all policies of the runs; by default that of the experiment.
    """
    model = make_model(experiment.model, dataset.image_shape, dataset.classes)
    used = {experiment.policy} if policies is None else policies
    rules = Rules(model, compiled_policies(used, experiment.devices), experiment.norm_order)
    dynamics = DYNAMICS[experiment.dynamics]
    return laid_out(Spec(rules, experiment.devices, experiment.batch_size, dynamics, SINGLE), layout)


def laid_out(spec: Spec, layout: Layout) -> Spec:
    """The same program with another layout."""
    return spec._replace(rules=spec.rules._replace(rows=layout.rows), layout=layout)


def record_summary(moment: Moment) -> dict[str, Array]:
    """Values of every iteration that a run always records."""
    return {
        "transmission_time": moment.info.transmission_time,
        "train_loss": moment.info.train_loss,
        "new_link_time": moment.info.new_link_time,
        "links_used": moment.info.used_links.sum(dtype=jnp.int32) // 2,
        "new_links_used": moment.info.new_links.sum(dtype=jnp.int32) // 2,
        "finite": jnp.isfinite(moment.info.deviation),
    }


def record_audit(moment: Moment) -> dict[str, Array]:
    """Values of every iteration that an audit needs."""
    return record_summary(moment) | {
        "adjacency": as_matrix(moment.inputs.adjacency, moment.neighbors),
        "fired": moment.info.fired,
        "gradient_norm": moment.info.gradient_norm,
        "largest_gradient": moment.info.largest_gradient,
    }


def record_trace(moment: Moment) -> dict[str, Array]:
    """The full state of every iteration, for checking small runs by hand."""
    return record_audit(moment) | {
        "weights": _as_vectors(moment.after.weights),
        "last_broadcast": _as_vectors(moment.after.last_broadcast),
        "used_links": as_matrix(moment.info.used_links, moment.neighbors),
        "sample": moment.sample,
    }


def _as_vectors(weights: Float[Array, "device *parameters"]) -> Float[Array, "device parameter"]:
    return weights.reshape(len(weights), -1)


def _in_full_precision(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compute matrix products in full precision; accelerators use a lower one by default."""

    @functools.wraps(function)
    def traced(*arguments: Any, **named: Any) -> Any:
        with jax.default_matmul_precision("highest"):
            return function(*arguments, **named)

    return traced


def evaluated_together(layout: Layout) -> Layout:
    """One run at a time on a CPU, whose cache has room for one; several at a time elsewhere."""
    if jax.default_backend() == "cpu":
        return layout._replace(block=1)
    return layout._replace(block=math.gcd(layout.block, 16)) if layout.block else layout


@functools.partial(jax.jit, static_argnames="spec")
def initialise(spec: Spec, hypers: Hyper) -> State:
    """The states of all runs before their first iteration."""

    def one(hyper: Hyper) -> State:
        weights = draw_models(hyper.key, spec.rules.model.init, spec.devices)
        memory = spec.dynamics.begin(hyper)
        return start(weights, spec.dynamics.at(hyper, memory, jnp.int32(0)).links, memory)

    return spread(spec.layout, one)((hypers,))


@functools.partial(
    jax.jit, static_argnames=("spec", "record", "length"), donate_argnames=("states", "purses")
)
@_in_full_precision
def advance(
    spec: Spec,
    record: Recorder,
    length: int,
    hypers: Hyper,
    states: State,
    purses: Purse | None,
    first: Array,
    train: Samples,
) -> tuple[State, Purse | None, dict[str, Array]]:
    """Advance all runs by `length` iterations from iteration `first`, and return the recorded values.

    If `purses` are given, budgets are checked, at the cost of a copy of the models per iteration.
    """

    def one(
        hyper: Hyper, state: State, purse: Purse | None, first: Array, train: Samples
    ) -> tuple[State, Purse | None, dict[str, Array]]:
        iterations = first + jnp.arange(length)
        sample = jax.vmap(lambda k: draw_samples(hyper.key, k, hyper.shards, spec.batch_size))
        coin = jax.vmap(lambda k: draw_coins(hyper.key, k, spec.devices))

        def body(carry: Any, drawn: tuple[Array, Array, Array]) -> tuple[Any, dict[str, Array]]:
            state, purse = carry
            iteration, sample, coin = drawn
            images, labels = train.images[sample], train.labels[sample]
            now = spec.dynamics.at(hyper, state.memory, iteration)
            training = now.present | hyper.change.absent_train
            inputs = Inputs(iteration, now.links, training, images, labels, coin)
            here = hyper
            if now.moved is not None:
                here = hyper._replace(neighbors=now.moved.neighbors)
                state = state._replace(adjacency=now.moved.before)
            state, info = step(spec.rules, here, state, inputs)
            state = state._replace(memory=now.memory)
            if purse is not None:
                budgets, rest = hyper.budgets
                time = info.transmission_time
                purse = spend(purse, budgets, time, iteration, state.weights, rest)
            return (state, purse), record(Moment(here.neighbors, sample, inputs, info, state))

        drawn = (iterations, sample(iterations), coin(iterations))
        (state, purse), recorded = jax.lax.scan(body, (state, purse), drawn, unroll=_UNROLL)
        return state, purse, recorded

    return spread(spec.layout, one)((hypers, states, purses), (first, train))


@functools.partial(jax.jit, static_argnames="spec")
@_in_full_precision
def evaluate(spec: Spec, states: State, test: Samples) -> dict[str, Array]:
    """Accuracy and loss of every device's model on the full test set, and the consensus error."""

    def one(state: State, test: Samples) -> dict[str, Array]:
        mean = jnp.mean(state.weights, axis=0)
        accuracy, loss, accuracy_of_mean = _evaluate_with_mean(spec, state.weights, mean, test)
        return {
            "accuracy": accuracy,
            "test_loss": loss,
            "mean_model_accuracy": accuracy_of_mean,
            "consensus_error": jnp.sqrt(jnp.sum((state.weights - mean) ** 2) / spec.devices),
            "broadcasts": state.broadcasts,
            "finite": jnp.isfinite(state.weights).all(axis=parameters_of(state.weights)),
        }

    return spread(evaluated_together(spec.layout), one)((states,), (test,))


@functools.partial(jax.jit, static_argnames="spec")
@_in_full_precision
def evaluate_mean_models(spec: Spec, hypers: Hyper, states: State, train: Samples) -> dict[str, Array]:
    """The global loss F(w̄) of the average of all models, as in the theorem."""

    def one(hyper: Hyper, state: State, train: Samples) -> dict[str, Array]:
        model = spec.rules.model
        objective = make_objective(train.images, train.labels, hyper.shards, model.images_at_once)
        return {"global_loss": global_loss(model, jnp.mean(state.weights, axis=0), objective)}

    return spread(evaluated_together(spec.layout), one)((hypers, states), (train,))


@functools.partial(jax.jit, static_argnames="spec")
@_in_full_precision
def evaluate_purses(spec: Spec, purses: Purse, test: Samples) -> dict[str, Array]:
    """Accuracy of every device's model when each budget was reached."""

    def one(purse: Purse, test: Samples) -> dict[str, Array]:
        budgets, devices, *shape = purse.weights.shape
        rows = purse.weights.reshape(budgets * devices, *shape)
        accuracy, _ = _accuracy_and_loss(spec.rules.model, rows, test)
        accuracy = accuracy.reshape(budgets, devices)
        return {
            "accuracy_at_budget": jnp.where(purse.reached[:, None] >= 0, accuracy, jnp.nan),
            "iteration_at_budget": purse.reached,
        }

    return spread(evaluated_together(spec.layout), one)((purses,), (test,))


def _evaluate_with_mean(
    spec: Spec, weights: Array, mean: Array, test: Samples
) -> tuple[Float[Array, "device"], Float[Array, "device"], Float[Array, ""]]:
    """Accuracies and losses of all devices, and the accuracy of their average."""
    score = functools.partial(_accuracy_and_loss, spec.rules.model)
    if spec.layout.rows is None:  # all at once, because they use the same images
        accuracy, loss = score(jnp.concatenate([weights, mean[None]]), test)
        return accuracy[:-1], loss[:-1], accuracy[-1]
    accuracy, loss = on_own_rows(spec.layout.rows, score, shared=1)(weights, test)
    return accuracy, loss, score(mean[None], test)[0][0]


def _accuracy_and_loss(
    model: Model, rows: Float[Array, "row *parameters"], test: Samples
) -> tuple[Float[Array, "row"], Float[Array, "row"]]:
    """Accuracy and mean loss of each row on the test images, chunk by chunk.

    If the last chunk would be shorter, it begins earlier and leaves out what was already counted.
    """
    total = len(test.labels)
    at_once = min(model.images_at_once, total)

    def sums(first: Array) -> tuple[Array, Array]:
        begin = jnp.minimum(first, total - at_once)
        new = begin + jnp.arange(at_once) >= first
        chunk = jax.tree.map(lambda array: jax.lax.dynamic_slice_in_dim(array, begin, at_once), test)
        images = normalise(chunk.images)  # once for all rows
        logits = logits_of_all(model, rows, images)
        right = (jnp.argmax(logits, axis=-1) == chunk.labels) & new
        loss = jnp.where(new, jax.vmap(model.loss, (0, None))(logits, chunk.labels), 0)
        return right.sum(1, dtype=jnp.int32), loss.sum(1)

    right, loss = jax.lax.map(sums, jnp.arange(0, total, at_once))
    return right.sum(0) / total, loss.sum(0) / total
