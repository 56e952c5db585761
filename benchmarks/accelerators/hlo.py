"""Optimised programs of XLA, parsed from their text."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

_ITEM_BITS = {"pred": 8, "bf16": 16, "c64": 64, "c128": 128}
_ARRAY = re.compile(r"\b([a-z]+\d*)\[([\d,]*)\](\{[^{}]*\})?")
_HEAD = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$")
_LINE = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = (.*)$")
_NAME = re.compile(r"%([\w.\-]+)")


class Array(NamedTuple):
    """Type, shape and layout of a result."""

    dtype: str
    shape: tuple[int, ...]
    layout: str = ""

    @property
    def bytes(self) -> float:
        """Its size in the accelerator's memory; 0 if it is kept on the chip."""
        if "S(1)" in self.layout:
            return 0.0
        bits = _ITEM_BITS.get(self.dtype) or int(re.sub(r"\D", "", self.dtype) or 0)
        return math.prod(self.shape) * bits / 8


class Instruction(NamedTuple):
    """One operation."""

    name: str
    results: tuple[Array, ...]
    opcode: str
    operands: tuple[str, ...]
    attributes: str
    is_root: bool

    @property
    def bytes(self) -> float:
        """Size of all results."""
        return sum(array.bytes for array in self.results)

    def called(self, attribute: str) -> str:
        """Name of the computation in an attribute; empty without it."""
        found = re.search(rf"\b{attribute}=%?([\w.\-]+)", self.attributes)
        return found[1] if found else ""

    @property
    def branches(self) -> list[str]:
        """Names of the computations of a conditional."""
        found = re.search(r"branch_computations=\{([^}]*)\}", self.attributes)
        if found:
            return _NAME.findall(found[1])
        return [self.called("true_computation"), self.called("false_computation")]

    @property
    def trips(self) -> int | None:
        """Number of executions of a loop, if the compiler knows it."""
        found = re.search(r'known_trip_count":\{"n":"(\d+)"', self.attributes)
        return int(found[1]) if found else None

    @property
    def target(self) -> str:
        """The function that a custom call calls."""
        found = re.search(r'custom_call_target="([^"]*)"', self.attributes)
        return found[1] if found else ""


class Computation(NamedTuple):
    """A sequence of operations in the order of the schedule."""

    instructions: dict[str, Instruction]

    @property
    def root(self) -> Instruction:
        """The operation that gives the result."""
        return next(one for one in self.instructions.values() if one.is_root)

    @property
    def parameters(self) -> list[Instruction]:
        """The parameters in order."""
        found = [one for one in self.instructions.values() if one.opcode == "parameter"]
        return sorted(found, key=lambda one: int(one.operands[0]))

    def users(self, name: str) -> list[Instruction]:
        """The operations with this operand."""
        return [one for one in self.instructions.values() if name in one.operands]


class Program(NamedTuple):
    """A compiled program."""

    computations: dict[str, Computation]
    entry: Computation


def parse(text: str) -> Program:
    """The program in a text of `compiled.as_text()`."""
    computations: dict[str, Computation] = {}
    entry = current = Computation({})
    for line in text.splitlines():
        head = _HEAD.match(line)
        if head:
            current = computations[head[2]] = Computation({})
            entry = current if head[1] else entry
        elif found := _LINE.match(line):
            current.instructions[found[2]] = _instruction(found[2], found[3], bool(found[1]))
    return Program(computations, entry)


def _instruction(name: str, text: str, is_root: bool) -> Instruction:
    """An operation from `TYPE opcode(operands), attributes`."""
    end = _closing(text, 0) if text.startswith("(") else text.index(" ")
    kind, rest = text[:end], text[end:].lstrip()
    opcode = rest[: rest.index("(")]
    close = _closing(rest, len(opcode))
    inside, attributes = rest[len(opcode) + 1 : close - 1], rest[close:]
    results = tuple(
        Array(dtype, tuple(int(size) for size in shape.split(",") if size), layout)
        for dtype, shape, layout in _ARRAY.findall(kind)
    )
    operands = (inside,) if opcode == "parameter" else tuple(_NAME.findall(inside))
    return Instruction(name, results, opcode, operands, attributes, is_root)


def _closing(text: str, opening: int) -> int:
    """The position after the parenthesis that closes the one at `opening`."""
    depth = 0
    for position in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0:
            return position + 1
    raise ValueError(f"no closing parenthesis: {text[opening : opening + 80]}")
