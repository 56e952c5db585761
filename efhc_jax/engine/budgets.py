"""Accuracy at a transmission budget: that of the models of the iteration that reaches it.

A budget is reached by the first iteration after which the cumulative transmission time is at least the
budget. That iteration is detected inside the compiled program, which keeps its models.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from efhc_jax.models.rows import for_each


class Spending(NamedTuple):
    """The transmission time that a run has spent, and its models when each budget was reached."""

    spent: Float[Array, ""]  # cumulative transmission time
    error: Float[Array, ""]  # its rounding error
    reached: Int[Array, "budget"]  # iterations done when the budget was reached, or −1
    weights: Float[Array, "budget device *parameters"]


def start_spending(runs: int, budgets: int, weights: Float[Array, "run device *parameters"]) -> Spending:
    """Runs that have spent nothing."""
    nothing = jnp.zeros(runs, weights.dtype)
    kept = jnp.broadcast_to(weights[:, None], (runs, budgets, *weights.shape[1:]))
    return Spending(nothing, nothing, jnp.full((runs, budgets), -1, jnp.int32), kept)


def spend(
    spending: Spending,
    budgets: Float[Array, "budget"],
    time: Float[Array, ""],
    iteration: Int[Array, ""],
    weights: Float[Array, "device *parameters"],
    rest: Float[Array, "budget"] | float = 0.0,
) -> Spending:
    """Add the time of one iteration, and keep its models if it reaches a budget.

    The sum is kept in two numbers, because a single one in 32 bits would drift in a long run. `rest` is
    the rounding error of the budgets.
    """
    added = spending.spent + time
    part = added - spending.spent
    lost = (spending.spent - (added - part)) + (time - part) + spending.error
    spent = added + lost
    error = lost - (spent - added)
    # spent + error ≥ budgets + rest, in an order that does not round the small parts away
    enough = (spent - budgets) + (error - rest) >= 0
    now = enough & (spending.reached < 0)
    return Spending(
        spent,
        error,
        jnp.where(now, iteration + 1, spending.reached).astype(spending.reached.dtype),
        jnp.where(for_each(now, spending.weights), weights, spending.weights),
    )


def with_exact_amounts(spending: Spending, spent: np.ndarray) -> Spending:
    """The same with the exact amounts (run,), summed in 64 bits on the host."""
    rounded = spent.astype(spending.spent.dtype)
    error = (spent - rounded).astype(rounded.dtype)
    return spending._replace(spent=jnp.asarray(rounded), error=jnp.asarray(error))


def may_reach(most: np.ndarray, budgets: np.ndarray, reached: np.ndarray) -> bool:
    """Whether any run can reach a budget that it has not yet reached.

    Args:
        most: upper bound of what each run will have spent at the next check (run,).
        budgets: (run, budget).
        reached: −1 where a budget has not been reached (run, budget).
    """
    room = 1 + 1e-6  # for rounding of the individual times
    return bool(((most * room)[:, None] >= budgets)[reached < 0].any())
