"""The kernel of a convolution, tanh and pooling, interpreted: values of the plain form."""

import functools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from efhc_jax.models import make_model, triton
from efhc_jax.models.base import logits_of_all
from efhc_jax.models.triton import IMAGES, is_supported

interpreted = functools.partial(triton.pooled_convolution, interpret=True)


def normal(*shape):
    return jnp.asarray(np.random.default_rng(len(shape)).normal(size=shape))


def plain(kernels, bias, x):
    """A convolution by JAX, and the mean over each square."""
    window = kernels.reshape(len(kernels), len(x), 5, 5)
    z = jax.lax.conv_general_dilated(
        x, window, (1, 1), "VALID", dimension_numbers=("CHWN", "OIHW", "CHWN")
    )
    z = jnp.tanh(z + bias[:, :, None, None])
    outputs, height, width, batch = z.shape
    return z.reshape(outputs, height // 2, 2, width // 2, 2, batch).mean((2, 4))


def test_every_point_of_every_block_is_that_of_the_plain_form(x64):
    kernels, bias, x = normal(3, 50) / 7, normal(3, 1), normal(2, 8, 10, 2 * IMAGES)
    found = interpreted(kernels, bias, x)
    assert found.shape == (3, 2, 3, 2 * IMAGES)
    np.testing.assert_allclose(found, plain(kernels, bias, x), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("axis_of_images", [None, 0])
def test_many_models_on_the_same_images_or_on_their_own(x64, axis_of_images):
    kernels, bias = normal(2, 3, 25) / 5, normal(2, 3, 1)
    x = normal(1, 6, 6, IMAGES) if axis_of_images is None else normal(2, 1, 6, 6, IMAGES)
    axes = (0, 0, axis_of_images)
    found = jax.vmap(interpreted, axes)(kernels, bias, x)
    expected = jax.vmap(plain, axes)(kernels, bias, x)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_lenet5_scores_in_kernels_as_on_a_cpu(x64, monkeypatch):
    model = make_model("lenet5", (28, 28), 10)
    rows = jax.vmap(model.init)(jax.random.split(jax.random.key(0), 2))
    images = normal(3, 28, 28)  # fewer than a block
    on_cpu = logits_of_all(model, rows, images)
    monkeypatch.setattr("jax.lax.platform_dependent", lambda *arguments, cuda, **_: cuda(*arguments))
    monkeypatch.setattr(triton, "pooled_convolution", interpreted)
    np.testing.assert_allclose(logits_of_all(model, rows, images), on_cpu, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("platform", "capability", "supported"),
    [
        ("cpu", None, True),
        ("gpu", "7.0", False),
        ("gpu", "7.5", False),
        ("gpu", "8.0", True),
        ("gpu", "12.0", True),
        ("gpu", "gfx942", True),
    ],
)
def test_gpus_older_than_triton_are_known(monkeypatch, platform, capability, supported):
    device = SimpleNamespace(platform=platform, compute_capability=capability)
    monkeypatch.setattr("jax.local_devices", lambda: [device])
    assert is_supported() is supported


def lowered(function, *arguments, platform):
    return jax.jit(function).trace(*arguments).lower(lowering_platforms=(platform,)).as_text()


def test_lenet5_has_kernels_on_gpus_that_support_them_only(monkeypatch):
    model = make_model("lenet5", (28, 28), 10)
    arguments = jnp.zeros((3, model.size)), jnp.zeros((2, 28, 28))

    def has_kernels(platform):
        every = functools.partial(logits_of_all, model)
        return "xla.gpu.triton" in lowered(every, *arguments, platform=platform)

    assert has_kernels("cuda")
    assert not has_kernels("cpu")
    assert not has_kernels("tpu")
    monkeypatch.setattr(triton, "is_supported", lambda: False)
    assert not has_kernels("cuda")
