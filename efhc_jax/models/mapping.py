"""Convolutions and pooling in forms that can be mapped over many models.

A convolution whose kernels differ between devices is compiled as a grouped convolution under `jax.vmap`,
and the gradient of pooling by `reduce_window` as a scatter. Both are many times slower than what they
are replaced by here: a matrix product of patches with kernels, and a maximum or sum of strided slices.
In models with these, the gradient of a dense layer for a single sample is made a product as well. The
functions of a model are traced, and their operations evaluated one by one; those that are not covered
run as written.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Literal, jaxpr_as_fun
from jax.extend.core import primitives as p
from jaxtyping import Array

from efhc_jax.models.base import Model
from efhc_jax.models.products import of_one_sample, scores

_LARGEST_WINDOW = 128  # points of a window, each of which is an operation of the program

_Rule = Callable[..., Array]
_Rules = dict[Any, _Rule]  # by operation
_Function = Callable[..., Any]


def mapped_well(model: Model, image_shape: tuple[int, int]) -> Model:
    """The model with its convolutions and pooling rewritten; the same object if it has none."""
    row = jax.eval_shape(model.init, jax.random.key(0))
    images = jax.ShapeDtypeStruct((2, *image_shape), jnp.result_type(float))
    if not _has_covered(_RULES, jax.make_jaxpr(model.logits)(row, images).jaxpr):
        return model
    return model._replace(
        logits=rewritten(model.logits),
        logits_of_all=model.logits_of_all or functools.partial(_scores_in_turn, model.logits),
        logits_on_cpu=model.logits_on_cpu or rewritten(model.logits, on_cpu=True),
    )


def _scores_in_turn(logits: _Function, rows: Array, images: Array) -> Array:
    """Scores of every row on the same images; on a CPU of one row after the other.

    One at a time, convolutions are fast as written, and many images need no room for their patches.
    """

    def in_turn(rows: Array, images: Array) -> Array:
        return jax.lax.map(lambda row: logits(row, images), rows)

    at_once = jax.vmap(logits, (0, None))
    return jax.lax.platform_dependent(rows, images, cpu=in_turn, default=at_once)


def rewritten(function: _Function, *, on_cpu: bool = False) -> _Function:
    """A function with the same values and gradients, its convolutions and pooling rewritten.

    Functions with derivatives of their own (`jax.custom_jvp`, `jax.custom_vjp`) run as written.

    Args:
        function: the function.
        on_cpu: whether to use the products of `models/products.py`, which accelerators cannot fuse.
    """
    rules = _RULES_ON_CPU if on_cpu else _RULES

    @functools.wraps(function)
    def apply(*arguments: Any) -> Any:
        traced, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
        found = _evaluate(rules, traced.jaxpr, traced.consts, jax.tree.leaves(arguments))
        return jax.tree.unflatten(jax.tree.structure(shapes), found)

    return apply


def _evaluate(
    rules: _Rules, traced: Jaxpr, constants: Sequence[Any], arguments: Sequence[Any]
) -> list[Any]:
    """The results of a traced function."""
    values: dict[Any, Any] = dict(zip(traced.constvars, constants, strict=True))
    values |= dict(zip(traced.invars, arguments, strict=True))

    def read(variable: Any) -> Any:
        return variable.val if isinstance(variable, Literal) else values[variable]

    for equation in traced.eqns:
        found = _evaluate_one(rules, equation, [read(variable) for variable in equation.invars])
        values |= dict(zip(equation.outvars, found, strict=True))
    return [read(variable) for variable in traced.outvars]


def _evaluate_one(rules: _Rules, equation: JaxprEqn, arguments: list[Any]) -> list[Any]:
    """The results of one operation."""
    primitive, params = equation.primitive, equation.params
    if _is_covered(rules, equation):
        return [rules[primitive](*arguments, **params)]
    if primitive in _CALLS and _is_within(rules, equation):
        called = params[_CALLS[primitive]]
        body, constants = (
            (called.jaxpr, called.consts) if isinstance(called, ClosedJaxpr) else (called, ())
        )
        if primitive is not p.remat_p:
            return _evaluate(rules, body, constants, arguments)
        again = jax.checkpoint(
            lambda *arguments: _evaluate(rules, body, constants, arguments),
            prevent_cse=params["prevent_cse"],
            policy=params["policy"],
        )
        return again(*arguments)
    return _as_written(equation, arguments)


def _as_written(equation: JaxprEqn, arguments: list[Any]) -> list[Any]:
    """The results of an operation that is not covered."""
    inputs, values = [], []
    for variable, value in zip(equation.invars, arguments, strict=True):
        if not isinstance(variable, Literal):
            inputs.append(variable)
            values.append(value)
    named = DebugInfo("operation", equation.primitive.name, None, None)
    alone = Jaxpr((), inputs, equation.outvars, [equation], equation.effects, named)
    return jaxpr_as_fun(ClosedJaxpr(alone, ()))(*values)


_CALLS = {p.jit_p: "jaxpr", p.closed_call_p: "call_jaxpr", p.call_p: "call_jaxpr", p.remat_p: "jaxpr"}


def _has_covered(rules: _Rules, traced: Jaxpr) -> bool:
    return any(_is_covered(rules, each) or _is_within(rules, each) for each in traced.eqns)


def _is_within(rules: _Rules, equation: JaxprEqn) -> bool:
    """Whether a function that the operation calls has something to rewrite."""
    if equation.primitive not in _CALLS:
        return False
    called = equation.params[_CALLS[equation.primitive]]
    return _has_covered(rules, called.jaxpr if isinstance(called, ClosedJaxpr) else called)


def _is_covered(rules: _Rules, equation: JaxprEqn) -> bool:
    if equation.primitive not in rules:
        return False
    params = equation.params
    if equation.primitive is p.dot_general_p:
        return _is_dense_of_one(equation)
    if equation.primitive is p.conv_general_dilated_p:
        kernel: Any = equation.invars[1].aval
        window = [kernel.shape[axis] for axis in params["dimension_numbers"].rhs_spec[2:]]
        alone = params["batch_group_count"] == 1
    else:
        window = params["window_dimensions"]
        alone = equation.primitive is not p.reduce_window_p or _reducer(params) is not None
    arrays: list[Any] = [variable.aval for variable in (*equation.invars, *equation.outvars)]
    filled = all(math.prod(array.shape) for array in arrays)
    kinds = {array.dtype for array in arrays}
    real = len(kinds) == 1 and jnp.issubdtype(kinds.pop(), jnp.floating)
    return alone and filled and real and math.prod(window) <= _LARGEST_WINDOW


def _is_dense_of_one(equation: JaxprEqn) -> bool:
    """Whether a product is that of a single row with a matrix of the same type."""
    arrays: list[Any] = [variable.aval for variable in (*equation.invars, *equation.outvars)]
    plain = equation.params["dimension_numbers"] == (((1,), (0,)), ((), ()))
    flat = all(array.ndim == 2 for array in arrays) and arrays[0].shape[0] == 1 < arrays[1].shape[1]
    alike = len({array.dtype for array in arrays}) == 1
    return plain and flat and alike and jnp.issubdtype(arrays[0].dtype, jnp.floating)


def _dense_of_one(sample: Array, weights: Array, *, precision: Any, **_: Any) -> Array:
    return of_one_sample(sample, weights, precision)


def _windows(
    x: Array,
    window: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
) -> list[Array]:
    """A strided slice of x for each point of a window that moves over it."""
    spans = [(size - 1) * step + 1 for size, step in zip(window, dilation, strict=True)]
    counts = [
        (size - span) // stride + 1 for size, span, stride in zip(x.shape, spans, strides, strict=True)
    ]
    points = itertools.product(*map(range, window))
    if tuple(window) == tuple(strides) and all(step == 1 for step in dilation):
        # Windows side by side: a reshaped array, whose slices have simpler gradients.
        x = jax.lax.slice(x, [0] * x.ndim, [n * size for n, size in zip(counts, window, strict=True)])
        x = x.reshape([size for pair in zip(counts, window, strict=True) for size in pair])
        return [x[tuple(i for at in point for i in (slice(None), at))] for point in points]
    slices = []
    for point in points:
        first = [at * step for at, step in zip(point, dilation, strict=True)]
        last = [at + (n - 1) * stride + 1 for at, n, stride in zip(first, counts, strides, strict=True)]
        slices.append(jax.lax.slice(x, first, last, strides))
    return slices


def _padded(x: Array, value: Any, padding: Sequence[tuple[int, int]], dilation: Sequence[int]) -> Array:
    """An array with a border, negative to crop, and with gaps between its entries."""
    config = [(low, high, step - 1) for (low, high), step in zip(padding, dilation, strict=True)]
    if not any(any(each) for each in config):
        return x
    return jax.lax.pad(x, jnp.asarray(value, x.dtype), config)


def _convolution(
    multiply: Callable[..., Array],
    x: Array,
    kernel: Array,
    *,
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    dimension_numbers: Any,
    feature_group_count: int,
    precision: Any,
    **_: Any,
) -> Array:
    """A convolution as a product of patches (batch, *space, point, channel) with kernels.

    `multiply` is the product of weights (output, input) with samples (sample, input).
    """
    numbers, groups = dimension_numbers, feature_group_count
    batch, channel, *space = numbers.lhs_spec
    outputs, inputs, *points = numbers.rhs_spec
    x = x.transpose(batch, *space, channel)
    kernel = kernel.transpose(*points, inputs, outputs)
    *window, depth, width = kernel.shape
    x = _padded(x, 0, [(0, 0), *padding, (0, 0)], [1, *lhs_dilation, 1])
    slices = _windows(x, [1, *window, 1], [1, *window_strides, 1], [1, *rhs_dilation, 1])
    shape = slices[0].shape[:-1]
    multiply = functools.partial(multiply, precision=precision)
    if groups == 1:
        patches = slices[0] if len(slices) == 1 else jnp.concatenate(slices, axis=-1)
        product = multiply(kernel.reshape(-1, width).T, patches.reshape(-1, patches.shape[-1]))
    else:
        patches = jnp.stack([each.reshape(-1, groups, depth) for each in slices], axis=1)
        kernel = kernel.reshape(-1, groups, width // groups)
        patches = patches.transpose(2, 0, 1, 3).reshape(groups, len(patches), -1)
        product = jax.vmap(multiply)(kernel.transpose(1, 2, 0), patches)
        product = jnp.moveaxis(product, 0, 1)
    product = product.reshape(*shape, width)
    back = np.argsort((numbers.out_spec[0], *numbers.out_spec[2:], numbers.out_spec[1]))
    return product.transpose(*back)


def _pooled(
    combine: Callable[[Array, Array], Array],
    border: float,
    x: Array,
    *,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int],
    window_dilation: Sequence[int],
    **_: Any,
) -> Array:
    """Pooling as a combination of strided slices."""
    x = _padded(x, border, padding, base_dilation)
    return functools.reduce(combine, _windows(x, window_dimensions, window_strides, window_dilation))


def _larger(best: Array, new: Array) -> Array:
    """The maximum, with the gradient of the first where several are equal. Not a number stays so."""
    return jnp.where((new > best) | (new != new), new, best)


def _smaller(best: Array, new: Array) -> Array:
    """The minimum, with the gradient of the first where several are equal. Not a number stays so."""
    return jnp.where((new < best) | (new != new), new, best)


_Pooling = tuple[Callable[[Array, Array], Array], float]  # a combination, and the value of the border
_MAX, _MIN, _SUM = (_larger, -math.inf), (_smaller, math.inf), (jnp.add, 0.0)
_POOLINGS: dict[Any, _Pooling] = {p.max_p: _MAX, p.min_p: _MIN, p.add_p: _SUM}


def _reducer(params: dict[str, Any]) -> _Pooling | None:
    """The pooling of a general `reduce_window`, if it is one that is covered."""
    body = params["jaxpr"]
    body = body.jaxpr if isinstance(body, ClosedJaxpr) else body
    if len(body.eqns) != 1 or len(body.invars) != 2 or params["consts"]:
        return None
    only = body.eqns[0]
    if set(only.invars) != set(body.invars) or list(body.outvars) != list(only.outvars):
        return None
    return _POOLINGS.get(only.primitive)


def _pooled_from(x: Array, start: Any, **params: Any) -> Array:
    """A general `reduce_window`: the initial value is combined with each window."""
    pooling = _reducer(params)
    assert pooling is not None
    return pooling[0](_pooled(*pooling, x, **params), jnp.asarray(start))


def _plain_scores(weights: Array, samples: Array, precision: Any) -> Array:
    """Like `products.scores`, with the gradients that JAX derives."""
    return jax.lax.dot_general(samples, weights, (((1,), (1,)), ((), ())), precision=precision)


_RULES: _Rules = {
    p.conv_general_dilated_p: functools.partial(_convolution, _plain_scores),
    p.reduce_window_max_p: functools.partial(_pooled, *_MAX),
    p.reduce_window_min_p: functools.partial(_pooled, *_MIN),
    p.reduce_window_sum_p: functools.partial(_pooled, *_SUM),
    p.reduce_window_p: _pooled_from,
}
_RULES_ON_CPU: _Rules = _RULES | {
    p.dot_general_p: _dense_of_one,
    p.conv_general_dilated_p: functools.partial(_convolution, scores),
}
