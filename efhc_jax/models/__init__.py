"""Models, one per file, with an entry each in `MODELS`.

An entry is the location of a factory, "module:function", or the factory itself, so that names are known
without importing JAX. A factory takes the image shape and the number of classes.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from efhc_jax.models.base import Model

MODELS: dict[str, str | Callable[[tuple[int, int], int], Model]] = {
    "svm": "efhc_jax.models.svm:svm",
    "lenet5": "efhc_jax.models.lenet5:lenet5",
    "logistic": "efhc_jax.models.logistic:logistic",
    "quadratic": "efhc_jax.models.quadratic:quadratic",
}


def make_model(name: str, image_shape: tuple[int, int], classes: int) -> Model:
    """The named model for these images; the same object for the same arguments."""
    return _make(MODELS[name], image_shape, classes)


@functools.cache
def _make(
    entry: str | Callable[[tuple[int, int], int], Model], image_shape: tuple[int, int], classes: int
) -> Model:
    if not isinstance(entry, str):
        return entry(image_shape, classes)
    module, function = entry.split(":")
    return getattr(importlib.import_module(module), function)(image_shape, classes)
