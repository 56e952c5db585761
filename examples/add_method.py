"""A method in one file: adapt, then combine, with a step of a chosen size towards the neighbours.

Run it with: python examples/add_method.py
Or use it in any command: efhc sweep --members examples/add_method.py --method gossip over_relaxed \
    --method.step 0.5 1 --dataset fashion_mnist_mini --iterations 1000
"""

from dataclasses import dataclass

import efhc_jax as efhc


@dataclass(frozen=True)
class OverRelaxed:
    """Its parameters: flags, TOML entries and axes of a sweep follow from them."""

    step: float = efhc.parameter(1.0, "Size of the step towards the neighbours.", low=0, high=1.5)


def update(turn: efhc.Turn, parameters: OverRelaxed, memory) -> efhc.Updated:
    """W(k+1) = X + step·(P(k)·X − X), with X = W(k) + Δ(k) the models after local training."""
    trained = turn.trained(turn.weights)
    weights = trained + parameters.step * (turn.mix(trained) - trained)
    return efhc.Updated(weights, memory)


efhc.METHODS["over_relaxed"] = efhc.Method(update, parameters=OverRelaxed, local_training=True)


def main() -> None:
    """Compare how far models are apart for steps of several sizes."""
    experiment = efhc.Experiment(
        method="over_relaxed", policy="zt", dataset="fashion_mnist_mini", iterations=1000, eval_every=100
    )
    grid = efhc.sweep(experiment, **{"method.step": [0.5, 1.0, 1.2]})
    for step, apart in zip(grid["method.step"].values, grid.consensus_error[:, -1], strict=True):
        print(f"step {step:g}: consensus error {float(apart):.3f}")


if __name__ == "__main__":
    main()
