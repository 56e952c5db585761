"""Models, one per file, with an entry each in `MODELS`.

An entry is a factory, which takes the image shape and the number of classes, or an `Architecture`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from efhc_jax.members import Registry, said_of_member

if TYPE_CHECKING:
    from efhc_jax.models.base import Model


class Architecture(NamedTuple):
    """A model with parameters of its own, such as a width.

    Attributes:
        make: function from the image shape, the number of classes and the parameters to a `Model`.
        parameters: frozen dataclass of the parameters. Each value is a model, and a compilation.
    """

    make: Callable[..., Model]
    parameters: type | None = None


Factory = Callable[[tuple[int, int], int], "Model"]

MODELS: Registry[Factory | Architecture] = Registry(
    {
        "svm": "efhc_jax.models.svm:svm",
        "lenet5": "efhc_jax.models.lenet5:lenet5",
        "logistic": "efhc_jax.models.logistic:logistic",
        "quadratic": "efhc_jax.models.quadratic:quadratic",
    }
)


def make_model(name: str, image_shape: tuple[int, int], classes: int, parameters: Any = None) -> Model:
    """The named model for these images; the same object for the same arguments."""
    built_in = MODELS.is_built_in(name)
    return _make(name, MODELS[name], built_in, image_shape, classes, parameters)


@functools.cache
def _make(
    name: str,
    entry: Factory | Architecture,
    built_in: bool,
    image_shape: tuple[int, int],
    classes: int,
    parameters: Any,
) -> Model:
    if built_in and not isinstance(entry, Architecture):
        return entry(image_shape, classes)
    from efhc_jax.models.checks import check_model
    from efhc_jax.models.mapping import mapped_well

    make = entry.make if isinstance(entry, Architecture) else entry
    own = () if parameters is None else (parameters,)
    with said_of_member(f"model={name!r}", "its factory"):
        model = make(image_shape, classes, *own)
    if not built_in:
        check_model(name, model, image_shape, classes)
    return mapped_well(model, image_shape)
