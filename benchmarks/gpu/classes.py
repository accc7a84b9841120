"""``python -m benchmarks.gpu.classes NAME...``: measures classes one after the other, a line of JSON for each.

A process of its own, so that a compiler that does not come back or a kernel that kills the device's context costs one class.
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from importlib.util import find_spec
from typing import Any

from benchmarks.gpu.cases import CASES, GpuCase, Operands, drawn, size_in_bytes
from benchmarks.gpu.contestants import (
    OURS,
    GpuContestant,
    copy_bandwidth,
    error,
    on_device,
    ours,
    peers,
    traced,
    truth,
)
from benchmarks.gpu.timing import device_seconds, ratio, rounds_of, wall_seconds
from benchmarks.measure import Spread
from kernelgen.tensor.graph import Graph

ROUNDS = 20
LIMIT = "limit"
Record = dict[str, Any]


def main() -> None:
    """Prints the device's bandwidth, then the record of each class as soon as it is there."""
    arguments = _parser().parse_args()
    cupy: Any = importlib.import_module("cupy")
    torch: Any = importlib.import_module("torch") if find_spec("torch") and not arguments.no_peers else None
    bandwidth = copy_bandwidth(cupy, partial(device_seconds, cupy, torch))
    _say({"bandwidth": bandwidth})
    if torch is not None:
        _say({"torch_first_compile_ms": _first_compile(torch)})
    for case in CASES:
        if case.name in arguments.name or not arguments.name:
            _say(
                {"class": case.name, "record": guarded(case, cupy, torch, bandwidth, arguments.tiny, arguments.seconds)}
            )


def guarded(case: GpuCase, cupy: Any, torch: Any, bandwidth: float, tiny: bool, seconds: float) -> Record:
    """The record of a class, or what went wrong."""
    try:
        return measured(case, cupy, torch, bandwidth, tiny, seconds)
    except Exception as fault:  # whatever a contestant raises, the other classes are still measured
        return {"failed": f"{type(fault).__name__}: {fault}"}


def measured(case: GpuCase, cupy: Any, torch: Any, bandwidth: float, tiny: bool, seconds: float) -> Record:
    """All contestants on one class: answers checked, times in turns, as ratios to ours and to the copy's time."""
    operands = case.operands(tiny)
    given = drawn(operands)
    arrays = on_device(cupy, torch, given)
    expected = truth(case, torch, operands, given, arrays)
    contestants = [*ours(case, operands, arrays), *(peers(case, torch, arrays) if torch is not None else ())]
    errors = {one.name: error(one.answer(), expected) for one in contestants}
    clock = wall_seconds if case.small else device_seconds
    calls = {one.name: one.call for one in contestants}
    times = rounds_of(calls, clock, cupy, torch, ROUNDS, seconds / 2)
    moved = sum(size_in_bytes(*one) for one in operands.values()) + _bytes_out(case, tiny)
    record = _record(contestants, times, errors, case.tolerance, moved, bandwidth)
    sizes = [min(rows, given[0].shape[0]) for rows in case.rows]
    return record | {
        "sizes": {str(rows): _at_size(case, operands, cupy, torch, arrays, rows, seconds) for rows in sizes}
    }


def _record(
    contestants: Sequence[GpuContestant],
    times: Mapping[str, Sequence[float]],
    errors: Mapping[str, float],
    tolerance: float,
    moved: int,
    bandwidth: float,
) -> Record:
    limit = moved / bandwidth
    rows = {
        one.name: {
            "milliseconds": asdict(Spread.of(times[one.name], 1e3)),
            "bandwidth_fraction": limit / Spread.of(times[one.name]).median,
            "largest_error": errors[one.name],
            "right": errors[one.name] <= tolerance,
            "cold_compile_ms": one.cold_ms,
        }
        for one in contestants
    }
    against = {name: asdict(Spread.of(ratio(times, name, OURS))) for name in times if name != OURS}
    return {"bytes": moved, "limit_ms": limit * 1e3, "contestants": rows, "times_of_ours": against}


def _at_size(
    case: GpuCase, operands: Operands, cupy: Any, torch: Any, arrays: Sequence[Any], rows: int, seconds: float
) -> Record:
    """Medians in milliseconds at another number of rows; the kernels are those of all sizes."""
    part = [arrays[0][:rows], *arrays[1:]]
    contestants = [next(ours(case, operands, part)), *(peers(case, torch, part) if torch is not None else ())]
    calls = {one.name: one.call for one in contestants}
    times = rounds_of(calls, device_seconds, cupy, torch, ROUNDS, seconds / 8)
    return {name: Spread.of(found, 1e3).median for name, found in times.items()}


def _bytes_out(case: GpuCase, tiny: bool) -> int:
    """The bytes of the results, at the size of the inputs."""
    fixed = GpuCase(case.name, case.inputs, case.tiny, case.ours, case.torch)
    graph: Graph = traced(fixed, case.operands(tiny))
    total = sum(value.type.size * value.type.dtype.itemsize for value in graph.outputs)
    assert isinstance(total, int), "all extents are numbers"
    return total


def _first_compile(torch: Any) -> float:
    """Milliseconds of the first thing that torch compiles in a process, which sets up its compiler."""
    start = time.perf_counter()
    torch.compile(lambda x: x + 1)(torch.zeros(8, device="cuda"))
    torch.cuda.synchronize()
    return (time.perf_counter() - start) * 1e3


def _say(found: Record) -> None:
    print(json.dumps(found), flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.classes", description=__doc__)
    parser.add_argument("name", nargs="*", help="classes; none: all")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--seconds", type=float, default=10.0, help="of measuring for a class")
    return parser


if __name__ == "__main__":
    main()
