"""``python -m tests.memory --compiles 2000 [--json OUT]``: what compiling many kernels in one process leaves in memory.

Every kernel is another one, and is let go of after a call. Once without the cache on disk, and once with all in it.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import kernelgen
from kernelgen.composite.description import KernelDesc
from tests.support.kernel_examples import Writer, tensor

OPERATORS = ("Exp", "Neg", "Abs", "Tanh", "Sqrt")
WARM_UP = 0.2
"""The share of the compilations after which growth counts: by then every table and pool of the process is full."""

Compiles = Annotated[int, typer.Option(help="kernels to compile")]


def kernel(number: int) -> KernelDesc:
    """One of many different kernels: a chain of one to five functions over rows of some length, times its input."""
    shape = (64, number % 97 + 3)
    w, x = Writer(), tensor("x", *shape)
    value = x
    for step in range(number // 97 % 5 + 1):
        value = w.op(OPERATORS[(number // 485 + number + step) % 5], value, shape=shape)
    return w.desc(f"chain{number}", (x,), w.op("Mul", value, x, shape=shape))


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def compile_and_run(number: int) -> None:
    """One kernel, made, called and let go of."""
    desc = kernel(number)
    (x,) = desc.inputs
    kernelgen.compile(desc)(np.ones([int(str(dim)) for dim in x.shape], np.float32))


def measured(compiles: int) -> list[int]:
    """Resident bytes at 21 moments, from before the first to after the last compilation."""
    found: list[int] = []
    for number in range(compiles + 1):
        if number % max(1, compiles // 20) == 0:
            gc.collect()
            found.append(resident())
        if number < compiles:
            compile_and_run(number)
    return found


def growth(samples: list[int]) -> int:
    """Bytes between the end of the warm-up and the end."""
    return samples[-1] - samples[round(WARM_UP * (len(samples) - 1))]


def _in_process(compiles: int, cache: str) -> dict[str, Any]:
    program = f"import json; from tests.memory import measured; print(json.dumps(measured({compiles})))"
    environment = {**os.environ, "GRAPHKERNEL_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    samples = json.loads(done.stdout)
    return {"resident_bytes": samples, "growth_bytes": growth(samples), "bytes_each": growth(samples) / compiles / 0.8}


def main(compiles: Compiles = 2000, json_: Annotated[Path | None, typer.Option("--json")] = None) -> None:
    """Prints the growth, and writes the record."""
    with tempfile.TemporaryDirectory() as folder:
        record = {
            "compiles": compiles,
            "cache off": _in_process(compiles, "/dev/null/no folder"),
            "cache filled": _in_process(compiles, folder),
            "cache on": _in_process(compiles, folder),
        }
    for name in ("cache off", "cache on"):
        found: dict[str, Any] = record[name]  # pyright: ignore[reportAssignmentType]
        typer.echo(
            f"{name}: {found['growth_bytes'] / 1e6:.1f} MB after the warm-up, {found['bytes_each']:.0f} bytes each"
        )
    if json_ is not None:
        json_.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
