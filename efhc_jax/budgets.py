"""Accuracy within a transmission budget, taken exactly: the models of the iteration that reaches it.

A budget is reached by the first iteration after which the cumulative transmission time is no less
than it. A purse watches for that iteration inside the compiled program and keeps its models.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from efhc_jax.mixing import for_each


class Purse(NamedTuple):
    """What one run has spent, and its models when each budget was reached."""

    spent: Float[Array, ""]  # cumulative transmission time
    error: Float[Array, ""]  # what rounding has taken from it
    reached: Int[Array, "budget"]  # iterations done when the budget was reached, or −1
    weights: Float[Array, "budget device *parameters"]


def open_purses(runs: int, budgets: int, weights: Float[Array, "run device *parameters"]) -> Purse:
    """Purses from which nothing has been spent."""
    nothing = jnp.zeros(runs, weights.dtype)
    kept = jnp.broadcast_to(weights[:, None], (runs, budgets, *weights.shape[1:]))
    return Purse(nothing, nothing, jnp.full((runs, budgets), -1, jnp.int32), kept)


def spend(
    purse: Purse,
    budgets: Float[Array, "budget"],
    time: Float[Array, ""],
    iteration: Int[Array, ""],
    weights: Float[Array, "device *parameters"],
    rest: Float[Array, "budget"] | float = 0.0,
) -> Purse:
    """Account for one iteration, and keep its models where it is the one that reaches a budget.

    The sum is kept exactly in two numbers: a plain one in 32 bits would drift within a long run.
    `rest` is what rounding took from the budgets.
    """
    added = purse.spent + time
    part = added - purse.spent
    lost = (purse.spent - (added - part)) + (time - part) + purse.error
    spent = added + lost
    error = lost - (spent - added)
    # spent + error ≥ budgets + rest, without losing the small parts in the sums
    enough = (spent - budgets) + (error - rest) >= 0
    now = enough & (purse.reached < 0)
    return Purse(
        spent,
        error,
        jnp.where(now, iteration + 1, purse.reached).astype(purse.reached.dtype),
        jnp.where(for_each(now, purse.weights), weights, purse.weights),
    )


def top_up(purses: Purse, spent: np.ndarray) -> Purse:
    """The purses with the exact amounts (run,) of 64-bit sums that were kept on the host."""
    rounded = spent.astype(purses.spent.dtype)
    error = (spent - rounded).astype(rounded.dtype)
    return purses._replace(spent=jnp.asarray(rounded), error=jnp.asarray(error))


def may_reach(most: np.ndarray, budgets: np.ndarray, reached: np.ndarray) -> bool:
    """Whether any run can reach a budget that it has not yet reached.

    Args:
        most: the most that each run can have spent by the next look (run,).
        budgets: (run, budget).
        reached: −1 where a budget has not been reached (run, budget).
    """
    room = 1 + 1e-6  # for the rounding of single times
    return bool(((most * room)[:, None] >= budgets)[reached < 0].any())
