"""A graph in one file: two fully connected groups of devices with one link between them.

Run it with: python examples/add_graph.py
"""

import numpy as np

import efhc_jax as efhc
from efhc_jax.network.topologies import NetworkSettings


def two_rooms(settings: NetworkSettings, rng: np.random.Generator) -> np.ndarray:
    """Links as pairs of devices (link, 2), each once, the smaller index first."""
    half = settings.devices // 2
    one, other = np.triu_indices(settings.devices, 1)
    same_room = (one < half) == (other < half)
    door = (one == 0) & (other == half)
    return np.stack([one, other], axis=1)[same_room | door]


efhc.GRAPHS["two_rooms"] = two_rooms


def main() -> None:
    """Compare its consensus error with that of a ring and a complete graph."""
    experiment = efhc.Experiment(dataset="fashion_mnist_mini", iterations=1000, eval_every=100)
    for graph in ("ring", "two_rooms", "complete"):
        run = efhc.simulate(experiment.replace(graph=graph))
        apart, accuracy = run.consensus_error[-1], run.accuracy[-1].mean()
        print(f"{graph}: consensus error {float(apart):.3f}, accuracy {float(accuracy):.1%}")


if __name__ == "__main__":
    main()
