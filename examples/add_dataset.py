"""A dataset in one file: noisy stripes at four angles, one class per angle.

Run it with: python examples/add_dataset.py
"""

import numpy as np

import efhc_jax as efhc
from efhc_jax.data import DATASETS, Source

TRAIN, TEST, SIZE, ANGLES = 2_000, 400, 28, 4


def load() -> efhc.Dataset:
    """Grayscale images as uint8 (sample, height, width), labels from 0; the same at every call."""
    rng = np.random.default_rng(0)
    train_labels, test_labels = (np.arange(n, dtype=np.int32) % ANGLES for n in (TRAIN, TEST))
    return efhc.Dataset(
        "stripes", draw(train_labels, rng), train_labels, draw(test_labels, rng), test_labels
    )


def draw(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One image per label: stripes at its angle."""
    y, x = np.mgrid[:SIZE, :SIZE]
    angle = np.pi * labels[:, None, None] / ANGLES
    waves = np.sin((x * np.cos(angle) + y * np.sin(angle)) / 2)
    noise = rng.standard_normal(waves.shape)
    return np.clip(128 + 40 * waves + 100 * noise, 0, 255).astype(np.uint8)


DATASETS["stripes"] = Source(
    load=load, where=lambda: "generated", samples=(TRAIN, TEST), note="stripes at four angles"
)


def main() -> None:
    """Train four devices with one angle each, without and with communication."""
    experiment = efhc.Experiment(dataset="stripes", devices=4, iterations=1000, eval_every=100)
    for policy in ("local", "efhc"):
        run = efhc.simulate(experiment.replace(policy=policy))
        print(f"{policy}: accuracy {float(run.accuracy[-1].mean()):.1%}")


if __name__ == "__main__":
    main()
