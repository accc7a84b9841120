"""``python -m benchmarks.stencils.devices [--size N] [--json OUT]``: what the programs move of memory, on every target.

Operator by operator and as one kernel; and whether they are right in the interpreter of PTX and in the simulator of AscendC.
Nothing is measured. Needs NVRTC.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import graphkernel as gk
import kernelgen
from benchmarks.stencils.programs import PROGRAMS, Picture
from graphkernel.handoff import to_desc
from graphkernel.report.entries import bytes_unfused
from kernelgen.driver import planned
from kernelgen.kernel import Kernel
from kernelgen.nest.nodes import Nest, Space
from kernelgen.targets import find_target
from kernelgen.tensor.dims import product
from kernelgen.tensor.graph import Node

TARGETS = ("cpu", "gpu", "ascend")
CHECKED: Mapping[str, tuple[int, int]] = {"gpu": (1100, 64), "ascend": (256, 256)}
"""The picture that a device's interpreter or simulator computes."""
GREATEST_ERROR = 1e-5

Program = Callable[[Picture], Any]


def main() -> int:
    """Looks at all programs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stencils.devices")
    parser.add_argument("--size", type=int, default=2048, help="rows and columns of the picture")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    programs: dict[str, Any] = {}
    for program in PROGRAMS:
        memory = {target: moved(program, arguments.size, target) for target in TARGETS}
        programs[program.__name__] = {"memory": memory, "devices": {each: checked(program, each) for each in CHECKED}}
        print(program.__name__, json.dumps(programs[program.__name__]), flush=True)
    if arguments.json:
        whole = {"date": str(date.today()), "size": arguments.size, "programs": programs}
        arguments.json.write_text(json.dumps(whole, indent=1) + "\n")
    return 0


def moved(program: Program, size: int, target: str) -> dict[str, Any]:
    """Kernels of a ``program`` on ``size x size`` float32, and bytes before fusion and after: arguments, and temporaries in
    the target's memory, which are written and read."""
    kernels = fused(program, (size, size), target)
    nests = [planned(to_desc(node, target), find_target(target)).nest for node in kernels]
    before = sum(int(str(bytes_unfused(node.body))) for node in kernels if node.body is not None)
    found = {"kernels": len(kernels), "before": before, "after": sum(map(_bytes, nests))}
    return {**found, "temporaries": sum(_temporaries(nest) for nest in nests)}


def checked(program: Program, target: str) -> dict[str, Any]:
    """The largest error of a ``program`` on a device's interpreter, and the facts proved of its kernel.

    Raises AssertionError for wrong numbers.
    """
    shape = CHECKED[target]
    (node,) = fused(program, shape, target)
    kernel: Kernel = kernelgen.compile(to_desc(node, target), target)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    right = program(x.astype(np.float64))
    pairs = zip(kernel(x), right if isinstance(right, tuple) else (right,), strict=True)
    error = max(float(np.abs(result - expected).max() / np.abs(expected).max()) for result, expected in pairs)
    assert error < GREATEST_ERROR, f"{program.__name__} on {target}: {error}"
    return {
        "shape": shape,
        "error": error,
        "proved": len(kernel.proof.facts),
        "temporaries": _temporaries(_nest(kernel)),
    }


def fused(program: Program, shape: tuple[int, int], target: str) -> list[Node]:
    """The kernels of a ``program`` on a picture of this ``shape``. Raises AssertionError where an operator is in none."""
    graph = gk.optimize(gk.trace(program, gk.spec(shape, "float32")), target=target)
    assert all(node.body is not None for node in graph.operators), "all of it is in kernels"
    return [node for node in graph.operators if node.body is not None]


def _nest(kernel: Kernel) -> Nest:
    return kernel.lowered.nest


def _temporaries(nest: Nest) -> int:
    """Bytes of temporaries that are no tile's own."""
    held = (buffer for buffer in nest.buffers if buffer.space is Space.WORKSPACE)
    return sum(int(str(product(buffer.shape))) * buffer.dtype.itemsize for buffer in held)


def _bytes(nest: Nest) -> int:
    arguments = (buffer for buffer in nest.buffers if buffer.space is not Space.WORKSPACE)
    given = sum(int(str(product(buffer.shape))) * buffer.dtype.itemsize for buffer in arguments)
    return given + 2 * _temporaries(nest)


if __name__ == "__main__":
    sys.exit(main())
