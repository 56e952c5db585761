"""Evaluation of the models of a batch of runs, compiled."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from efhc_jax.engine.budgets import Spending
from efhc_jax.engine.objective import global_loss, make_objective
from efhc_jax.engine.program import Samples, Spec, in_full_precision
from efhc_jax.engine.sharding import on_own_rows, spread
from efhc_jax.engine.step import State
from efhc_jax.engine.values import RunValues
from efhc_jax.models.base import Model, logits_of_all, normalise
from efhc_jax.models.rows import parameters_of


@functools.partial(jax.jit, static_argnames="spec")
@in_full_precision
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

    return spread(spec.layout.for_evaluation, one)((states,), (test,))


@functools.partial(jax.jit, static_argnames="spec")
@in_full_precision
def evaluate_mean_models(spec: Spec, runs: RunValues, states: State, train: Samples) -> dict[str, Array]:
    """The global loss F(w̄) of the average of all models, as in the theorem."""

    def one(run: RunValues, state: State, train: Samples) -> dict[str, Array]:
        model = spec.rules.model
        objective = make_objective(train.images, train.labels, run.shards, model.images_at_once)
        return {"global_loss": global_loss(model, jnp.mean(state.weights, axis=0), objective)}

    return spread(spec.layout.for_evaluation, one)((runs, states), (train,))


@functools.partial(jax.jit, static_argnames="spec")
@in_full_precision
def evaluate_at_budgets(spec: Spec, spending: Spending, test: Samples) -> dict[str, Array]:
    """Accuracy of every device's model when each budget was reached."""

    def one(spending: Spending, test: Samples) -> dict[str, Array]:
        budgets, devices, *shape = spending.weights.shape
        rows = spending.weights.reshape(budgets * devices, *shape)
        accuracy, _ = _accuracy_and_loss(spec.rules.model, rows, test)
        accuracy = accuracy.reshape(budgets, devices)
        return {
            "accuracy_at_budget": jnp.where(spending.reached[:, None] >= 0, accuracy, jnp.nan),
            "iteration_at_budget": spending.reached,
        }

    return spread(spec.layout.for_evaluation, one)((spending,), (test,))


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

    Accelerators take larger chunks than a CPU, whose cache they would not fit.
    """
    return jax.lax.platform_dependent(
        rows,
        test,
        cpu=functools.partial(_in_chunks, model, model.images_at_once, right_by_argmax),
        default=functools.partial(_in_chunks, model, model.images_on_accelerators, right_by_comparison),
    )


def _in_chunks(
    model: Model, at_once: int, is_right: Callable[..., Array], rows: Array, test: Samples
) -> tuple[Float[Array, "row"], Float[Array, "row"]]:
    """If the last chunk would be shorter, it begins earlier and leaves out what was already counted."""
    total = len(test.labels)
    at_once = min(at_once, total)

    def sums(first: Array) -> tuple[Array, Array]:
        begin = jnp.minimum(first, total - at_once)
        new = begin + jnp.arange(at_once) >= first
        chunk = jax.tree.map(lambda array: jax.lax.dynamic_slice_in_dim(array, begin, at_once), test)
        images = normalise(chunk.images)  # once for all rows
        logits = logits_of_all(model, rows, images)
        right = is_right(logits, chunk.labels) & new
        loss = jnp.where(new, jax.vmap(model.loss, (0, None))(logits, chunk.labels), 0)
        return right.sum(1, dtype=jnp.int32), loss.sum(1)

    right, loss = jax.lax.map(sums, jnp.arange(0, total, at_once))
    return right.sum(0) / total, loss.sum(0) / total


def right_by_argmax(
    logits: Float[Array, "row batch class"], labels: Int[Array, "batch"]
) -> Bool[Array, "row batch"]:
    """Whether the first largest score is that of the label; NaN is the largest of all."""
    return jnp.argmax(logits, axis=-1) == labels


def right_by_comparison(
    logits: Float[Array, "row batch class"], labels: Int[Array, "batch"]
) -> Bool[Array, "row batch"]:
    """The same as `right_by_argmax`: no other score is larger than the label's, or as large and earlier.

    Compilers for accelerators fuse it with the loss, whereas an argmax is one more pass over the scores.
    """
    classes = jnp.arange(logits.shape[-1])
    is_label, is_earlier = labels[:, None] == classes, classes < labels[:, None]
    own = jnp.sum(jnp.where(is_label, logits, 0), axis=-1, keepdims=True)
    larger = (logits > own) | (is_earlier & (logits == own))
    is_nan = logits != logits  # in these words it is fused, and with `isnan` it is not
    larger |= is_nan & (is_earlier | (own == own))
    return ~jnp.any(larger, axis=-1)
