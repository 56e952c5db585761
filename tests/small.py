"""Experiments that many tests share; with the same shapes they also share compiled programs."""

import efhc_jax as efhc

SMALL = efhc.Experiment(
    devices=5,
    connectivity=0.6,
    iterations=20,
    eval_every=10,
    batch_size=2,
    r=4000.0,
    learning_rate=0.5,
)

QUADRATIC = efhc.Experiment(
    model="quadratic",
    dataset="synthetic",
    devices=6,
    connectivity=0.6,
    iterations=40,
    eval_every=10,
    r=200.0,
    learning_rate=0.05,
)
