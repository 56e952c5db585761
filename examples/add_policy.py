"""A policy in one file: EF-HC's trigger with a limit on how often a device broadcasts.

Run it with: python examples/add_policy.py
"""

import efhc_jax as efhc

ALLOWANCE = 0.3  # broadcasts per iteration of a device with the mean bandwidth


def fires(now: efhc.Situation):
    """Devices whose model has moved far enough and that are within their share of broadcasts."""
    moved = now.deviation >= now.r / now.bandwidth * now.decay
    share = ALLOWANCE * now.bandwidth / now.bandwidth.mean()
    return moved & (now.broadcasts <= share * now.iteration)


efhc.POLICIES["thrifty"] = efhc.Policy(fires)


def main() -> None:
    """Compare it with EF-HC on paired seeds."""
    experiment = efhc.Experiment(dataset="fashion_mnist_mini", iterations=1000, eval_every=100)
    grid = efhc.sweep(experiment, policy=["efhc", "thrifty"], seed=range(3))
    spent = grid.transmission_time.sum("step").mean("seed")
    for policy in grid.policy.values:
        print(f"{policy}: transmission time {float(spent.sel(policy=policy)):,.0f}")
    print(efhc.compare(grid, "policy", baseline="efhc"))


if __name__ == "__main__":
    main()
