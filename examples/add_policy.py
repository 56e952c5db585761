"""A policy in one file: EF-HC's trigger with an allowance of broadcasts, which a device can save up.

Run it with: python examples/add_policy.py
Or use it in any command: efhc sweep --members examples/add_policy.py --policy efhc thrifty \
    --policy.allowance 0.1 0.3 --dataset fashion_mnist_mini --iterations 1000
"""

from dataclasses import dataclass

import jax.numpy as jnp

import efhc_jax as efhc


@dataclass(frozen=True)
class Thrifty:
    """Its parameters: flags, TOML entries and axes of a sweep follow from them."""

    allowance: float = efhc.parameter(
        0.3, "Broadcasts per iteration that a device with the mean bandwidth earns.", low=0, high=1
    )
    savings: float = efhc.parameter(5.0, "Largest number of broadcasts that a device can save.", low=1)


def init(now: efhc.Situation, parameters: Thrifty):
    """Its memory before the first iteration, any tree of arrays: one broadcast per device."""
    return jnp.ones_like(now.bandwidth)


def fires(now: efhc.Situation, parameters: Thrifty, saved):
    """Devices whose model has moved far enough and that can pay, and what all have saved then."""
    moved = now.deviation >= now.r / now.bandwidth * now.decay
    fired = moved & (saved >= 1)
    earned = parameters.allowance * now.bandwidth / now.bandwidth.mean()
    return fired, jnp.minimum(saved - fired + earned, parameters.savings)


efhc.POLICIES["thrifty"] = efhc.Policy(fires, parameters=Thrifty, init=init)


def main() -> None:
    """Compare two allowances with EF-HC on paired seeds."""
    experiment = efhc.Experiment(dataset="fashion_mnist_mini", iterations=1000, eval_every=100)
    axes = {"policy": ["efhc", "thrifty"], "policy.allowance": [0.1, 0.3], "seed": range(3)}
    grid = efhc.sweep(experiment, **axes)
    spent = grid.transmission_time.sum("step").mean("seed")
    accuracy = grid.accuracy.isel(evaluation=-1).mean(("seed", "device"))
    for policy, allowance in [("efhc", 0.3), ("thrifty", 0.1), ("thrifty", 0.3)]:
        at = {"policy": policy, "policy.allowance": allowance}
        name = policy if policy == "efhc" else f"{policy} {allowance}"
        time, share = float(spent.sel(at)), float(accuracy.sel(at))
        print(f"{name}: transmission time {time:,.0f}, accuracy {share:.1%}")


if __name__ == "__main__":
    main()
