"""Dynamics in one file: devices that sleep in turns to save energy.

Run it with: python examples/add_dynamics.py
Or use it in any command: efhc sweep --members examples/add_dynamics.py --dynamics duty_cycle \
    --dynamics.awake 0.3 0.6 --dataset fashion_mnist_mini --iterations 1000
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

import efhc_jax as efhc
from efhc_jax.network.dynamics.base import Drawing, Drawn, links_among


@dataclass(frozen=True)
class DutyCycle:
    """Its parameters: flags, TOML entries and axes of a sweep follow from them."""

    awake: float = efhc.parameter(0.5, "Fraction of time that a device is awake.", low=0, high=1)
    cycle: int = efhc.parameter(20, "Number of iterations from waking to waking.", low=1)


def draw(drawing: Drawing) -> Drawn:
    """On the host, once per run: where in its cycle each device begins, from 0 to 1."""
    rng = np.random.default_rng(drawing.seed)
    return Drawn(jnp.asarray(rng.random(drawing.settings.devices), jnp.float32))


def at(network, parameters: DutyCycle, memory, iteration):
    """The network of iteration k: links between devices that are awake; all devices train."""
    position = (iteration / parameters.cycle + network.drawn) % 1
    awake = position < parameters.awake
    everybody = jnp.ones_like(awake)
    return efhc.Snapshot(links_among(network, awake), network.neighbors, everybody), memory


efhc.DYNAMICS["duty_cycle"] = efhc.Dynamics(at, parameters=DutyCycle, draw=draw)


def main() -> None:
    """Compare how far models are apart for devices that sleep more or less."""
    experiment = efhc.Experiment(
        dataset="fashion_mnist_mini", iterations=1000, eval_every=100, dynamics="duty_cycle"
    )
    grid = efhc.sweep(experiment, **{"dynamics.awake": [0.2, 0.5, 1.0]})
    for awake, apart in zip(grid["dynamics.awake"].values, grid.consensus_error[:, -1], strict=True):
        print(f"awake {awake:.0%} of the time: consensus error {float(apart):.3f}")


if __name__ == "__main__":
    main()
