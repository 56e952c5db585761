"""Launches, bytes and operations of a compiled program, counted in its text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.accelerators.hlo import Computation, Instruction, Program

# Operations that pass on what is there, and the ends of those that were begun before.
_FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "opt-barrier"}
_FREE |= {"partition-id", "replica-id", "while", "call", "conditional"}
_MOVES = {"parameter", "bitcast", "copy", "transpose", "tuple"}
_SLICES = {"slice", "dynamic-slice", "gather"}
_KERNEL = "__gpu$xla.gpu.triton"  # one of our own
_COLLECTIVES = ("all-reduce", "all-gather", "all-to-all", "collective-permute", "reduce-scatter")
_WITH_HOST = ("infeed", "outfeed", "send", "recv")


class Launch(NamedTuple):
    """An operation that the accelerator is asked for."""

    name: str
    kind: str  # opcode, or the function that a custom call calls
    bytes: float  # read and written
    flops: float  # of its matrix products
    times: int  # executions of the operation per execution of the program
    is_copy: bool  # it moves an array and computes nothing

    @property
    def is_collective(self) -> bool:
        """Whether several accelerators exchange data."""
        return self.kind.startswith(_COLLECTIVES)

    @property
    def is_with_host(self) -> bool:
        """Whether the host takes part."""
        return self.kind.startswith(_WITH_HOST) or "callback" in self.kind


def launches(
    program: Program, computation: Computation | None = None, times: int = 1
) -> Iterator[Launch]:
    """All launches of a computation, by default the whole program, including those in its loops."""
    computation = computation or program.entry
    for one in computation.instructions.values():
        for body, more in bodies(program, one):
            yield from launches(program, body, times * more)
        if one.opcode not in _FREE and not one.opcode.endswith("-done"):
            yield Launch(
                one.name,
                one.target or one.opcode,
                _bytes(program, computation, one),
                _flops(program, computation, one),
                times,
                _is_copy(program, one),
            )


def bodies(program: Program, one: Instruction) -> list[tuple[Computation, int]]:
    """The computations that an operation executes, and how often; of a conditional all branches.

    The conditions of loops are not included: the number of iterations is known here.
    """
    if one.opcode == "while":
        return [(program.computations[one.called("body")], one.trips or 1)]
    if one.opcode == "conditional":
        return [(program.computations[name], 1) for name in one.branches]
    name = {"call": "to_apply", "async-start": "calls"}.get(one.opcode)
    return [(program.computations[one.called(name)], 1)] if name else []


def main_loop(program: Program) -> Computation:
    """The body of the loop over iterations: of all loops of the program, the one with most launches."""
    loops = [
        program.computations[one.called("body")]
        for one in program.entry.instructions.values()
        if one.opcode == "while"
    ]
    return max(loops, key=lambda body: sum(1 for _ in launches(program, body)))


def _bytes(program: Program, computation: Computation, one: Instruction) -> float:
    operands = [computation.instructions[name] for name in one.operands]
    if one.opcode == "fusion":
        body = program.computations[one.called("calls")]
        read = sum(_read(body, parameter) for parameter in body.parameters)
        return read + _written(body, body.root)
    if one.opcode in _SLICES:
        return 2 * one.bytes
    if one.opcode == "dynamic-update-slice":
        return 2 * operands[1].bytes
    if one.opcode.startswith(_COLLECTIVES):
        return max(sum(operand.bytes for operand in operands), one.results[-1].bytes)
    if one.opcode == "copy-start":
        return operands[0].bytes + one.results[0].bytes
    results = one.results[:-1] if _has_workspace(one) else one.results
    return sum(operand.bytes for operand in operands) + sum(array.bytes for array in results)


def _has_workspace(one: Instruction) -> bool:
    """Whether the last result of a library's function is its scratch memory."""
    last = one.results[-1] if one.results else None
    return (
        one.opcode == "custom-call" and len(one.results) > 1 and last is not None and last.dtype == "s8"
    )


def _read(body: Computation, parameter: Instruction) -> float:
    """Bytes of a parameter that a fusion reads: all, or the slices of it, or what it gathers.

    Slices that overlap are counted once, because they are near each other. What is gathered counts as
    often as it is gathered.
    """
    sliced = gathered = 0.0
    for user in body.users(parameter.name):
        if user.opcode == "gather" and user.operands[0] == parameter.name:
            gathered += user.bytes
        elif user.opcode in _SLICES and user.operands[0] == parameter.name:
            sliced += user.bytes
        elif user.opcode == "bitcast":
            sliced += _read(body, user)
        elif user.opcode != "dynamic-update-slice" or parameter.name in user.operands[1:]:
            sliced = parameter.bytes
    return gathered + min(sliced, parameter.bytes)


def _written(body: Computation, root: Instruction) -> float:
    """Bytes that a fusion writes: of arrays that it updates in place, the updates."""
    operands = [body.instructions[name] for name in root.operands if name in body.instructions]
    if root.opcode == "tuple":
        return sum(_written(body, operand) for operand in operands)
    if root.opcode == "bitcast":
        return min(_written(body, operands[0]), root.bytes)
    return operands[1].bytes if root.opcode == "dynamic-update-slice" else root.bytes


def _is_copy(program: Program, one: Instruction) -> bool:
    if one.opcode != "fusion":
        return one.opcode in ("copy", "copy-start")
    body = program.computations[one.called("calls")]
    kinds = {each.opcode for each in body.instructions.values()}
    return kinds <= _MOVES


def _flops(program: Program, computation: Computation, one: Instruction) -> float:
    """Floating-point operations of matrix products: a multiplication and an addition are two.

    A sum counts as one, because products with few terms are compiled as sums.
    """
    if one.opcode == "fusion":
        body = program.computations[one.called("calls")]
        return sum(_flops(program, body, each) for each in body.instructions.values())
    if one.opcode == "convolution":
        kernel = computation.instructions[one.operands[1]].results[0].shape
        outputs = _labelled(one, kernel)
        return 2 * math.prod(one.results[0].shape) * math.prod(kernel) / outputs
    if one.opcode == "reduce":
        return 2 * math.prod(computation.instructions[one.operands[0]].results[0].shape)
    if one.target == _KERNEL:
        return _flops_of_kernel(computation, one)
    contracted = re.search(
        r'lhs_contracting_dim(?:ension)?s"?(?:=\{|:\[)([\d,"]*)', one.attributes.replace(" ", "")
    )
    if contracted is None:
        return 0.0
    shape = computation.instructions[one.operands[0]].results[0].shape
    axes = [int(axis) for axis in re.findall(r"\d+", contracted[1])]
    return 2 * math.prod(one.results[0].shape) * math.prod(shape[axis] for axis in axes)


def _flops_of_kernel(computation: Computation, one: Instruction) -> float:
    """Operations of a kernel of our own, which its text does not tell: 0 would make it look fast."""
    name = re.findall(r'\bname = "(\w+)"', one.attributes)[-1]
    if name != "pooled_convolution":
        raise ValueError(f"unknown kernel {name}: its operations have to be counted")
    kernels = computation.instructions[one.operands[0]].results[0].shape
    pooled_points = 4  # of the convolution, for each point of the result
    return 2 * math.prod(one.results[0].shape) * pooled_points * kernels[-1]


def _labelled(one: Instruction, kernel: tuple[int, ...]) -> int:
    """The number of outputs of a convolution's kernel."""
    labels = re.search(r"dim_labels=\w+_(\w+)->", one.attributes)
    return kernel[labels[1].index("o")] if labels else 1
