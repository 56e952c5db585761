"""A model in one file: a perceptron with one hidden layer, in Flax NNX.

Run it with: python examples/add_model.py
"""

import optax
from flax import nnx

import efhc_jax as efhc


class Perceptron(nnx.Module):
    """A hidden layer of 32 units and an output layer; all state is `nnx.Param`."""

    def __init__(self, inputs: int, classes: int, rngs: nnx.Rngs):
        self.hidden = nnx.Linear(inputs, 32, rngs=rngs)
        self.scores = nnx.Linear(32, classes, rngs=rngs)

    def __call__(self, images):
        """Scores (batch, class) of normalised images (batch, height, width)."""
        return self.scores(nnx.relu(self.hidden(images.reshape(len(images), -1))))


def perceptron(image_shape: tuple[int, int], classes: int) -> efhc.Model:
    """The model for images of this shape; called once per shape."""
    inputs = image_shape[0] * image_shape[1]
    loss = optax.softmax_cross_entropy_with_integer_labels
    return efhc.from_nnx(lambda rngs: Perceptron(inputs, classes, rngs), loss)


efhc.MODELS["perceptron"] = perceptron


def main() -> None:
    """Train it on ten devices with two labels each."""
    run = efhc.simulate(
        efhc.Experiment(
            model="perceptron",
            dataset="fashion_mnist_mini",
            labels_per_device=2,
            learning_rate=0.1,
            iterations=1000,
            eval_every=100,
        )
    )
    print(f"accuracy {float(run.accuracy[-1].mean()):.1%} after {run.sizes['step']:,} iterations")


if __name__ == "__main__":
    main()
