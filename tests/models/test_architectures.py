"""Models of the user's own with parameters: each value is a model, and a compilation."""

import json
from dataclasses import dataclass

import numpy as np
import optax
import pytest
from flax import nnx

import efhc_jax as efhc
from efhc_jax.engine.program import advance
from efhc_jax.models.linear import linear
from small import SMALL


@dataclass(frozen=True)
class Layers:
    width: int = efhc.parameter(8, "Number of hidden units.", low=1)
    squash: bool = efhc.parameter(True, "Whether hidden units are squashed.")
    start: str = efhc.parameter("small", "Initial weights.")


class Network(nnx.Module):
    def __init__(self, pixels, classes, parameters, rngs):
        self.first = nnx.Linear(pixels, parameters.width, rngs=rngs)
        self.last = nnx.Linear(parameters.width, classes, rngs=rngs)
        self.squash = parameters.squash

    def __call__(self, images):
        hidden = self.first(images.reshape(len(images), -1))
        return self.last(nnx.tanh(hidden) if self.squash else hidden)


def make(image_shape, classes, parameters):
    pixels = image_shape[0] * image_shape[1]
    loss = optax.softmax_cross_entropy_with_integer_labels
    return efhc.from_nnx(lambda rngs: Network(pixels, classes, parameters, rngs), loss)


def test_a_width_is_swept(tiny, monkeypatch):
    monkeypatch.setitem(efhc.MODELS, "layers", efhc.Architecture(make, Layers))
    base = SMALL.replace(model="layers", learning_rate=0.1)
    before = advance._cache_size()
    grid = efhc.sweep(base, tiny, **{"model.width": [4, 6], "seed": [0, 1]})
    assert advance._cache_size() == before + 2
    sizes = json.loads(grid.attrs["parameters"])
    assert list(sizes.values()) == [60, 88]
    assert "layers Layers(width=6, squash=True, start='small') on tiny" in sizes
    alone = efhc.simulate(base.replace(model=Layers(width=6), seed=1), tiny)
    found = grid.sel({"model.width": 6, "seed": 1})
    np.testing.assert_allclose(found.train_loss, alone.train_loss, rtol=1e-5)
    assert alone.attrs["parameters"] == 88


def test_the_same_parameters_are_the_same_model(monkeypatch):
    monkeypatch.setitem(efhc.MODELS, "layers", efhc.Architecture(make, Layers))
    one = efhc.make_model("layers", (3, 3), 4, Layers())
    assert efhc.make_model("layers", (3, 3), 4, Layers()) is one
    assert efhc.make_model("layers", (3, 3), 4, Layers(width=9)) is not one


def of_scores(count):
    return lambda shape, classes: linear(shape, count, optax.softmax_cross_entropy_with_integer_labels)


@pytest.mark.parametrize(
    ("factory", "said"),
    [
        (of_scores(3), r"logits gives \(2, 3\) for 2 images; return a score per class"),
        (lambda shape, classes: None, "its factory gives a NoneType; return an efhc_jax.Model"),
        (lambda shape: None, "its factory raises TypeError"),
        (
            lambda shape, classes: 1 / 0,
            r"its factory raises ZeroDivisionError: .* \(test_architectures.py",
        ),
        (
            lambda shape, classes: linear(shape, 4, lambda s, y: s.mean()),
            r"loss gives \(\) for 2 samples",
        ),
        (
            lambda shape, classes: linear(shape, 4, lambda s, y: s)._replace(size=7),
            "init gives .* and size is 7; make them agree",
        ),
    ],
)
def test_a_mistake_is_said_with_the_name_of_the_model(tiny, monkeypatch, factory, said):
    monkeypatch.setitem(efhc.MODELS, "mine", factory)
    with pytest.raises(efhc.ExperimentError, match=f"^model='mine': {said}"):
        efhc.simulate(SMALL.replace(model="mine"), tiny)


def test_mistakes_of_graphs_are_said_with_their_name(tiny, monkeypatch):
    for draw in (lambda settings, rng: 1 / 0, lambda settings: 3):
        monkeypatch.setitem(efhc.GRAPHS, "mine", draw)
        with pytest.raises(efhc.ExperimentError, match="^graph='mine': its function raises"):
            efhc.simulate(SMALL.replace(graph="mine"), tiny)
