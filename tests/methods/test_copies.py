"""The defaults of methods with copies."""

import efhc_jax as efhc


def test_defaults_keep_compressed_models_together():
    """Larger steps of averaging let them move away from each other."""
    base = efhc.Experiment(method="choco", dataset="fashion_mnist_mini", iterations=1200, eval_every=400)
    gamma = efhc.methods.Choco().gamma
    grid = efhc.sweep(base, **{"method.gamma": [gamma, 5 * gamma]})
    apart = grid.consensus_error.values[:, 1:]
    assert (apart[0, 1:] < apart[0, :-1]).all()
    assert (apart[1, 1:] > apart[1, :-1]).all()
    assert efhc.methods.Sparq().gamma == gamma
