"""``python -m benchmarks gpu_compile --json OUT``: every kernel compiles for every architecture, within a budget of spills.

Each is made for the devices of an architecture, and compiled for it: two of them, every tenth kernel for all. No device is
needed: NVRTC compiles, and its assembler says what a kernel takes. Refusals of the kernel generator carry their
reason; what does not compile, or spills more than :data:`SPILLS` allows, fails the run.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import kernelgen
from benchmarks.gpu.descriptions import Amount, distinct
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.read import load_desc
from kernelgen.composite.write import dump_desc
from kernelgen.errors import KernelgenError, UnsupportedError
from kernelgen.machines.gpu.device import CAPABILITIES
from kernelgen.targets.gpu.dialects.program import Launch, launches
from kernelgen.targets.gpu.launch.nvrtc import compile_cuda, version

ARCHS = ("sm_80", "sm_90")
OTHERS = ("sm_75", "sm_86", "sm_89", "sm_100", "sm_120")
SAMPLE = 10
"""Of so many kernels one is compiled for the other architectures too."""

SHARED: Mapping[str, int] = {f"sm_{number}": device.shared_bytes for number, device in CAPABILITIES.items()}
"""Bytes of shared memory that a block may have."""

SPILLS = 0
"""Bytes of registers that a thread may spill."""

SPILLS_WITH_CALLS = 64
"""The same where the assembler calls subroutines of its own: it saves some of the caller's registers if more warps fit so."""

CALLS = re.compile(r"\b(div|rcp|sqrt)\.r[nz]\.f32\b|\b(div|rcp|sqrt|rsqrt)\.[a-z.]*f64\b|\bfma\.rn\.f64\b")
"""Instructions of PTX that become such calls, or whole functions of double precision."""

Record = dict[str, Any]


@dataclass(frozen=True)
class Used:
    """The most that any launch of a kernel takes: registers and bytes of a thread, shared bytes of a block, seconds.

    ``calls``: the assembler calls subroutines.
    """

    registers: int
    shared: int
    stack: int
    spilled: int
    calls: bool
    seconds: float


@dataclass(frozen=True)
class Task:
    """A kernel to compile, from a file of its own."""

    family: str
    name: str
    path: Path
    archs: Sequence[str] = ARCHS


def run(amount: Amount, jobs: int, families: Sequence[str] = ()) -> Record:
    """The record of all kernels: a row for each, and sums for each family."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(jobs) as pool:
        tasks = list(_written(Path(folder), amount, families))
        rows: list[Record] = []
        for row in pool.map(compiled, tasks):
            rows.append(row)
            print(f"\r{len(rows)} of {len(tasks)}, {len(faults(rows))} failed", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    found = faults(rows)
    for name, why in found.items():
        print(f"{name}: {why}")
    record: Record = {
        "compiler": version(),
        "budget": {"spilled": SPILLS, "spilled_with_calls": SPILLS_WITH_CALLS, "shared": dict(SHARED)},
        "seconds": round(time.perf_counter() - start),
        "families": {family: _sums([row for row in rows if row["family"] == family]) for family in _in_order(rows)},
        "failed": found,
        "kernels": rows,
    }
    for family, sums in record["families"].items():
        print(f"{family:14s} {json.dumps(sums)}")
    return record


def compiled(task: Task) -> Record:
    """The row of a task's kernel."""
    row: Record = {"family": task.family, "name": task.name}
    try:
        return row | resources(load_desc(task.path), task.archs)
    except KernelgenError as error:
        return row | {"failed": f"{type(error).__name__}: {error}"[:2000]}


def resources(desc: KernelDesc, archs: Sequence[str]) -> Record:
    """What a kernel takes on each architecture, the reason of a refusal, or what went wrong."""
    row: Record = {}
    try:
        for arch in archs:
            start = time.perf_counter()
            kernel = kernelgen.compile(desc, f"gpu:{arch}")
            row.setdefault("lower_seconds", round(time.perf_counter() - start, 3))
            row[arch] = asdict(_used(kernel, arch, max((_most(launch) for launch in launches(kernel.nest)), default=0)))
        return row
    except UnsupportedError as refusal:
        return row | {"refused": refusal.code, "message": str(refusal)}
    except KernelgenError as error:
        return row | {"failed": f"{type(error).__name__}: {error}"[:2000]}


def fault(row: Record) -> str:
    """What is wrong with a kernel: it does not compile, or takes more than it may; empty when nothing is."""
    return row.get(
        "failed", "; ".join(fault for arch in (*ARCHS, *OTHERS) if arch in row for fault in _above(row[arch], arch))
    )


def faults(rows: Sequence[Record]) -> dict[str, str]:
    """The faults of a run, by family and name."""
    found = ((f"{row['family']}/{row['name']}", fault(row)) for row in rows)
    return {name: why for name, why in found if why}


def lines(record: Record) -> str:
    """The record as JSON, each kernel in one line."""
    rows = ",\n".join(f"  {json.dumps(row)}" for row in record["kernels"])
    return json.dumps(record | {"kernels": []}, indent=1).replace('"kernels": []', f'"kernels": [\n{rows}\n ]')


def _most(launch: Launch) -> int:
    """Bytes of shared memory, declared or asked for."""
    return max(launch.shared_bytes, launch.most_dynamic_shared)


def _above(used: Mapping[str, int], arch: str) -> Iterator[str]:
    allowed = SPILLS_WITH_CALLS if used["calls"] else SPILLS
    if used["spilled"] > allowed:
        yield f"{arch}: {used['spilled']} bytes are spilled, {allowed} are allowed"
    if used["shared"] > SHARED[arch]:
        yield f"{arch}: {used['shared']} bytes of shared memory, {SHARED[arch]} are there"


def _used(kernel: kernelgen.Kernel, arch: str, shared: int) -> Used:
    start = time.perf_counter()
    found = compile_cuda(kernel.source, kernel.nest.name, arch)
    resources = found.resources.values()
    return Used(
        max((one.registers for one in resources), default=0),
        shared,
        max((one.stack for one in resources), default=0),
        max((max(one.spill_stores, one.spill_loads) for one in resources), default=0),
        CALLS.search(found.ptx) is not None,
        round(time.perf_counter() - start, 3),
    )


def _written(folder: Path, amount: Amount, families: Sequence[str]) -> Iterator[Task]:
    for number, (family, name, desc) in enumerate(distinct(amount, families)):
        path = folder / f"{number}.info"
        path.write_text(json.dumps(dump_desc(desc)))
        yield Task(family, name, path, ARCHS if number % SAMPLE else (*ARCHS, *OTHERS))


def _sums(rows: Sequence[Record]) -> Record:
    """Counts of a family, and the most of each resource."""
    done = [row for row in rows if ARCHS[0] in row]
    refused = Counter(row["refused"] for row in rows if "refused" in row)
    names = [field.name for field in fields(Used)]
    archs = [arch for arch in (*ARCHS, *OTHERS) if any(arch in row for row in done)]
    most = {arch: {name: max(row[arch][name] for row in done if arch in row) for name in names} for arch in archs}
    spill = sum(any(row[arch]["spilled"] for arch in archs if arch in row) for row in done)
    refusals = dict(sorted(refused.items()))
    return {"kernels": len(rows), "compiled": len(done), "refused": refusals, "spill": spill, "most": most}


def _in_order(rows: Sequence[Record]) -> list[str]:
    return list(dict.fromkeys(row["family"] for row in rows))
