"""Limits of the machine: its measured rates, and the minimum work of a simulation."""

from __future__ import annotations

import functools
import importlib.util
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from benchmarks.timing import Contender
from efhc_jax.engine.sharding import Layout, spread

PRODUCT_SIZE = 2048  # size of the square matrices whose product gives the machine's rate

# Layers of networks: (outputs, inputs, positions that each kernel is applied at).
_LAYERS = {
    "lenet5": [(6, 25, 28 * 28), (16, 150, 10 * 10), (120, 400, 1), (84, 120, 1), (10, 84, 1)],
    "cnn": [(16, 9, 28 * 28), (32, 144, 14 * 14), (64, 1568, 1), (10, 64, 1)],
}


# Work, as floating-point operations in matrix products: a multiplication and an addition are two. ----


def forward_flops(model: str, parameters: int) -> int:
    """Operations for the scores of one model for one image."""
    if model in _LAYERS:
        return sum(2 * math.prod(layer) for layer in _LAYERS[model])
    return 2 * parameters  # linear models: every parameter is multiplied by one input


def gradient_flops(model: str, parameters: int) -> int:
    """Operations for the scores and the gradient of one model for one image.

    The gradient of each layer's weights is a product as large as the layer's own, and so is that of the
    inputs of every layer but the first.
    """
    if model in _LAYERS:
        to_inputs = sum(2 * math.prod(layer) for layer in _LAYERS[model][1:])
        return 2 * forward_flops(model, parameters) + to_inputs
    return 2 * forward_flops(model, parameters)


def mixing_flops(parameters: int, devices: int, links: float) -> float:
    """Operations for P·W: one product per end of a link in use, and one per device for its own model."""
    return 2 * parameters * (devices + 2 * links)


def iteration_flops(
    model: str, parameters: int, devices: int, batch_size: int, links: float = 0.0
) -> float:
    """Operations of one iteration of one run: gradients of all devices, and mixing over links in use."""
    gradients = devices * batch_size * gradient_flops(model, parameters)
    return gradients + mixing_flops(parameters, devices, links)


def pass_bytes(parameters: int, devices: int, itemsize: int = 4) -> int:
    """Bytes for reading and writing W and Ŵ of one run once."""
    return 4 * itemsize * devices * parameters


# Rates, to be timed along with the work --------------------------------------------------------------


def pass_over_models(layout: Layout, weights: jax.Array, iterations: int) -> Contender:
    """Read and write W and Ŵ once per iteration, in place, and nothing else.

    The runs are distributed over accelerators and blocks by the layout, each block for all iterations
    before the next, so that models stay in the cache as long as in a simulation.
    """
    scale = jnp.ones((), weights.dtype)
    compiled = _passes.lower(layout, iterations, weights, weights, scale).compile()

    def prepare() -> tuple[jax.Array, ...]:
        return jax.block_until_ready((jnp.copy(weights), jnp.copy(weights), scale))

    return Contender(lambda given: jax.block_until_ready(compiled(*given)), prepare)


@functools.partial(jax.jit, static_argnums=(0, 1), donate_argnums=(2, 3))
def _passes(layout: Layout, iterations: int, weights: Any, last_broadcast: Any, scale: Any) -> Any:
    def one(weights: Any, last_broadcast: Any, scale: Any) -> Any:
        def body(carry: Any, _: None) -> tuple[Any, None]:
            return (carry[0] * scale, carry[1] * scale), None

        return jax.lax.scan(body, (weights, last_broadcast), None, length=iterations)[0]

    return spread(layout, one)((weights, last_broadcast), (scale,))


def matrix_products(layout: Layout) -> dict[str, Contender]:
    """Products of square matrices in 32 bits in each library; the fastest gives the machine's rate.

    That of JAX is computed on every accelerator of the layout.
    """
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((2, PRODUCT_SIZE, PRODUCT_SIZE), np.float32)
    contenders = {
        "product, jax": _product_of_jax(layout, left, right),
        "product, numpy": Contender(lambda _: left @ right),
    }
    if importlib.util.find_spec("torch"):
        contenders["product, torch"] = _product_of_torch(left, right)
    return contenders


def product_flops(name: str, layout: Layout) -> int:
    """Operations of one of `matrix_products`."""
    return 2 * PRODUCT_SIZE**3 * (layout.accelerators if name == "product, jax" else 1)


def _product_of_jax(layout: Layout, left: np.ndarray, right: np.ndarray) -> Contender:
    both = jnp.stack([left] * layout.accelerators), jnp.stack([right] * layout.accelerators)
    if layout.mesh is not None:
        both = jax.device_put(both, NamedSharding(layout.mesh, P("runs")))
    product = jax.jit(lambda a, b: spread(layout._replace(block=0), jnp.matmul)((a, b)))
    return Contender(lambda _: jax.block_until_ready(product(*both)))


def _product_of_torch(left: np.ndarray, right: np.ndarray) -> Contender:
    import torch

    from benchmarks.peers.torch_device import DEVICE, wait

    a, b = torch.from_numpy(left).to(DEVICE), torch.from_numpy(right).to(DEVICE)
    return Contender(lambda _: wait(a @ b))
