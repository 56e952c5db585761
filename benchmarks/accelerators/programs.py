"""Compiled programs in numbers: launches, bytes, temporaries, and a modelled time."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from benchmarks.accelerators.costs import Launch, launches, main_loop
from benchmarks.accelerators.hlo import Program, parse
from benchmarks.accelerators.targets import Target
from benchmarks.accelerators.workloads import Work, lowered
from efhc_jax.engine.program import UNROLL


def examine(work: Work, target: Target) -> dict[str, Any]:
    """Compile a program for an accelerator and count what it does per iteration, or per evaluation."""
    began = time.perf_counter()
    code, parameters, arrays = lowered(work, target)
    compiled = code.compile()
    seconds = time.perf_counter() - began
    memory = compiled.memory_analysis()
    return {
        "work": work.name,
        **work._asdict(),
        "target": target.name,
        "parameters": parameters,
        "arrays": arrays,
        "compile_seconds": seconds,
        "temporary_bytes": memory.temp_size_in_bytes,
        "peak_bytes": memory.argument_size_in_bytes
        + memory.output_size_in_bytes
        + memory.temp_size_in_bytes
        - memory.alias_size_in_bytes,
        **counted(parse(compiled.as_text()), work, target, parameters, arrays),
    }


def counted(
    program: Program, work: Work, target: Target, parameters: int, arrays: int = 2
) -> dict[str, Any]:
    """The counts of a parsed program, on each accelerator.

    The least that an iteration moves is its state, read and written once: two arrays of gossip.
    """
    every = list(launches(program))
    inside, per = (every, 1) if work.evaluates else (list(launches(program, main_loop(program))), UNROLL)
    models = work.runs * work.devices * parameters * 4 / work.accelerators

    def total(values: Iterable[tuple[str, float]]) -> dict[str, float]:
        found: dict[str, float] = {}
        for kind, value in values:
            found[kind] = found.get(kind, 0.0) + value / per
        return found

    return {
        "launches": sum(one.times for one in inside) / per,
        "bytes": sum(one.bytes * one.times for one in inside) / per,
        "least_bytes": models if work.evaluates else 2 * arrays * models,
        "flops": sum(one.flops * one.times for one in inside) / per,
        "copies_of_models": sum(one.times for one in inside if one.is_copy and one.bytes >= models),
        "outside_fusions": total((one.kind, one.times) for one in inside if one.kind != "fusion"),
        "collectives": total((one.kind, one.bytes * one.times) for one in inside if one.is_collective),
        "with_host": sum(one.times for one in every if one.is_with_host),
        "modelled_seconds": sum(one.times * modelled(one, target) for one in inside) / per
        if target.launch
        else None,
    }


def modelled(one: Launch, target: Target) -> float:
    """Seconds of a launch in the model: the longest of its launch, its bytes and its products."""
    bandwidth = target.link if one.is_collective else target.bandwidth
    return max(target.launch, one.bytes / bandwidth, one.flops / target.flops)
