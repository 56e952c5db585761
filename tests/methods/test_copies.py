"""The defaults of methods with copies, and the largest messages of all methods."""

import pytest

import efhc_jax as efhc
from efhc_jax.methods import METHODS
from efhc_jax.methods.base import largest_message


def test_defaults_keep_compressed_models_together():
    """Larger steps of averaging let them move away from each other."""
    base = efhc.Experiment(method="choco", dataset="fashion_mnist_mini", iterations=1200, eval_every=400)
    gamma = efhc.methods.Choco().gamma
    grid = efhc.sweep(base, **{"method.gamma": [gamma, 5 * gamma]})
    apart = grid.consensus_error.values[:, 1:]
    assert (apart[0, 1:] < apart[0, :-1]).all()
    assert (apart[1, 1:] > apart[1, :-1]).all()
    assert efhc.methods.Sparq().gamma == gamma


@pytest.mark.parametrize(
    ("compressor", "ratio", "numbers"),
    [
        ("none", 0.1, 1000),
        ("sign", 0.1, 1000),  # 1032 bits, but a whole copy over a new link
        ("random_k", 0.1, 1000),
        ("top_k", 0.1, 1000 * 42 / 32),  # all entries may be equal, each with a position of 10 bits
        ("random_k", 1.0, 1000),
    ],
)
def test_the_largest_message_is_a_compressed_one_or_a_whole_copy(compressor, ratio, numbers):
    """Budgets rely on this bound."""
    parameters = efhc.methods.Copies(compressor=compressor, ratio=ratio)
    assert largest_message(METHODS["copies"], 1000, parameters) == numbers


@pytest.mark.parametrize(("method", "arrays"), [("gossip", 1), ("tracking", 2), ("d2", 1)])
def test_the_largest_message_of_other_methods_has_all_their_arrays(method, arrays):
    assert largest_message(METHODS[method], 1000, None) == 1000 * arrays
