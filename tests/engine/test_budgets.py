"""Budgets: the iteration that reaches one is found exactly, and its own models are evaluated."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import efhc_jax as efhc
import small
from efhc_jax.engine.budgets import may_reach, spend, start_spending, with_exact_amounts
from efhc_jax.models import make_model

SMALL = small.SMALL.replace(iterations=30)


@jax.jit
def spend_all(spending, budgets, times):
    """Spend all times one after the other; the models of iteration k are all k + 1."""

    def body(spending, entry):
        time, iteration = entry
        weights = jnp.full((1, 1), iteration + 1, spending.weights.dtype)
        return spend(spending, budgets, time, iteration, weights), None

    spending, _ = jax.lax.scan(body, spending, (times, jnp.arange(len(times))))
    return spending


def opened(budgets):
    return jax.tree.map(lambda leaf: leaf[0], start_spending(1, budgets, jnp.zeros((1, 1, 1))))


def reached_by(times, budgets):
    """What 64-bit sums say: iterations done when each budget is reached, or −1."""
    sums = np.cumsum(times, dtype=np.float64)
    first = np.searchsorted(sums, np.asarray(budgets, np.float64), side="left")
    return np.where(first < len(times), first + 1, -1)


@pytest.mark.parametrize("spread", [1.0, 1e-3])
def test_a_long_sum_in_32_bits_finds_the_exact_iteration(spread):
    rng = np.random.default_rng(0)
    times = (1.7 + spread * rng.random(100_000)).astype(np.float32)
    total = times.sum(dtype=np.float64)
    budgets = np.sort(rng.uniform(0, total, 300)).astype(np.float32)
    spending = spend_all(opened(300), budgets, times)
    expected = reached_by(times, budgets)
    np.testing.assert_array_equal(spending.reached, expected)
    np.testing.assert_array_equal(spending.weights[:, 0, 0], expected)
    np.testing.assert_allclose(float(spending.spent) + float(spending.error), total, rtol=1e-9)
    plain = np.searchsorted(np.cumsum(times, dtype=np.float32), budgets) + 1
    assert (plain != expected).any(), "a plain sum would be wrong"


def test_a_sum_that_is_exactly_the_budget_reaches_it():
    times = np.full(12, 0.25, np.float32)
    budgets = jnp.array([0.25, 0.5, 1.0, 1.125, 3.0, 3.25])
    spending = spend_all(opened(6), budgets, times)
    assert spending.reached.tolist() == [1, 2, 4, 5, 12, -1]


def test_iterations_without_transmission_reach_nothing():
    spending = spend_all(opened(2), jnp.array([1e-6, 2.0]), np.array([0, 0, 1, 0, 0, 1, 1], np.float32))
    assert spending.reached.tolist() == [3, 6]
    assert spending.weights[:, 0, 0].tolist() == [3.0, 6.0]


def test_one_iteration_may_reach_several():
    spending = spend_all(opened(3), jnp.array([1.0, 2.0, 9.0]), np.array([0.5, 3.0], np.float32))
    assert spending.reached.tolist() == [2, 2, -1]


def test_a_purse_topped_up_goes_on_exactly():
    rng = np.random.default_rng(2)
    times = rng.random(40_000).astype(np.float32)
    sums = np.cumsum(times, dtype=np.float64)
    budgets = np.sort(rng.uniform(sums[20_000], sums[-1], 50)).astype(np.float32)
    spending = start_spending(1, 50, jnp.zeros((1, 1, 1)))
    spending = jax.tree.map(lambda leaf: leaf[0], with_exact_amounts(spending, sums[[19_999]]))
    found = spend_all(spending, budgets, times[20_000:]).reached
    np.testing.assert_array_equal(found + 20_000, reached_by(times, budgets))


@pytest.mark.parametrize(
    ("most", "reached", "answer"),
    [
        ([1.0], [[-1, -1]], False),
        ([2.0], [[-1, -1]], True),
        ([2.0], [[5, -1]], False),
        ([9.0], [[5, -1]], True),
        ([9.0], [[5, 6]], False),
        ([1.0, 9.0], [[-1, -1], [5, 6]], False),
        ([1.0, 9.0], [[-1, -1], [5, -1]], True),
        ([2.0 - 1e-7], [[-1, -1]], True),
    ],
)
def test_only_chunks_that_may_reach_a_budget_are_watched(most, reached, answer):
    budgets = np.array([[2.0, 8.0]] * len(most))
    assert may_reach(np.array(most), budgets, np.array(reached)) is answer


@pytest.mark.parametrize("policy", ["efhc", "zt", "rg"])
def test_the_iteration_is_that_of_64_bit_sums(tiny, policy):
    plain = efhc.simulate(SMALL.replace(policy=policy), tiny)
    total = plain.transmission_time.values.sum(dtype=np.float64)
    budgets = tuple(total * share for share in (1e-6, 0.1, 0.37, 0.5, 0.81, 0.999, 1.5))
    run = efhc.simulate(SMALL.replace(policy=policy, budgets=budgets), tiny)
    expected = reached_by(run.transmission_time.values, budgets)
    assert expected[-1] == -1
    np.testing.assert_array_equal(run.iteration_at_budget, expected)
    assert run.drop_vars(["accuracy_at_budget", "iteration_at_budget", "budget"]).equals(plain)


@pytest.mark.parametrize("policy", ["efhc", "zt"])
def test_budgets_that_are_sums_of_the_run_are_reached_by_them(tiny, policy):
    plain = efhc.simulate(SMALL.replace(policy=policy), tiny)
    sums = np.cumsum(plain.transmission_time.values, dtype=np.float64)
    budgets = tuple(np.unique(sums[sums > 0])[:7])
    run = efhc.simulate(SMALL.replace(policy=policy, budgets=budgets), tiny)
    np.testing.assert_array_equal(
        run.iteration_at_budget, reached_by(plain.transmission_time.values, budgets)
    )


@pytest.fixture(scope="module")
def total(tiny):
    """What the run spends in all."""
    return float(efhc.simulate(SMALL, tiny).transmission_time.sum())


def test_the_accuracy_is_that_of_a_run_that_ends_there(total, x64, tiny):
    run = efhc.simulate(SMALL.replace(budgets=(0.4 * total, 2 * total)), tiny)
    end = int(run.iteration_at_budget[0])
    assert 0 < end < 30
    assert end not in run.iteration
    ended = efhc.simulate(SMALL.replace(iterations=end), tiny)
    np.testing.assert_array_equal(run.accuracy_at_budget[0], ended.accuracy[-1])
    assert not np.array_equal(run.accuracy_at_budget[0], run.accuracy[0])
    assert run.iteration_at_budget.values.tolist() == [end, -1]
    assert run.accuracy_at_budget[1].isnull().all()


def test_a_budget_that_is_never_reached_has_no_accuracy(tiny):
    run = efhc.simulate(SMALL.replace(budgets=(1e9,)), tiny)
    assert run.iteration_at_budget.values.tolist() == [-1]
    assert run.accuracy_at_budget.isnull().all()
    silent = efhc.simulate(SMALL.replace(policy="local", budgets=(1e-9,)), tiny)
    assert silent.iteration_at_budget.values.tolist() == [-1]


def test_a_budget_reached_only_after_the_run_diverged_counts_as_never_reached(tiny):
    wild = SMALL.replace(model="quadratic", policy="rg", learning_rate_schedule="constant")
    sizes = [make_model(name, (3, 3), 4).size for name in ("quadratic", "svm")]
    same_coins = efhc.simulate(SMALL.replace(policy="rg"), tiny)
    sums = np.cumsum(same_coins.transmission_time.values, dtype=np.float64) * sizes[0] / sizes[1]
    budgets = (0.9 * sums[sums > 0][0], 0.88 * sums[-1])
    grid = efhc.sweep(wild.replace(budgets=budgets), tiny, learning_rate=[0.01, 1e6])
    first, last = reached_by(grid.transmission_time.values[0], budgets).tolist()
    assert first < int(grid.diverged_at[1]) < last
    assert grid.iteration_at_budget.values.tolist() == [[first, last], [first, -1]]
    assert not grid.accuracy_at_budget[1, 0].isnull().any()
    assert grid.accuracy_at_budget[1, 1].isnull().all()
