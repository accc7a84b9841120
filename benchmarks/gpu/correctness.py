"""Right answers on the device: a kernel for every operator of the catalogue, and some of the corpus's composites."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphkernel.errors import GraphKernelError
from graphkernel.handoff import to_desc
from graphkernel.ops import OPS
from kernelgen.composite.check import check
from kernelgen.composite.write import dump_desc
from kernelgen.errors import KernelgenError
from kernelgen.tensor.graph import Builder, Graph
from tests.support.operator_samples import Case, cases

Record = dict[str, Any]


def catalogue(folder: Path, names: Sequence[str] = ()) -> int:
    """Writes a description for each operator that a kernel can hold, in the first data type that it takes; how many."""
    count = 0
    for name in names or sorted(OPS):
        graph = next(filter(None, map(alone, cases(OPS[name]))), None)
        if graph is not None:
            (folder / f"{name}.info").write_text(json.dumps(dump_desc(to_desc(graph, "gpu"))))
            count += 1
    return count


def every(paths: Sequence[Path], wanted: int) -> list[Path]:
    """So many of the files, evenly spread."""
    step = max(len(paths) / max(wanted, 1), 1.0)
    return [paths[int(k * step)] for k in range(min(wanted, len(paths)))]


def verified(files: Sequence[Path], target: str, seconds: float) -> Record:
    """What ``kernelgen verify`` says of the files: counts, and the name and fault of each that failed."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "records.json"
        command = [
            sys.executable,
            "-m",
            "kernelgen",
            "verify",
            *map(str, files),
            "--target",
            target,
            *(["--device"] if target == "gpu" else []),
            "--json",
            str(out),
        ]
        jobs = str(min(8, os.cpu_count() or 1))
        try:
            done = subprocess.run(
                [*command, "--jobs", jobs], capture_output=True, text=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return {"failed": f"not done after {seconds:.0f} s", "files": len(files)}
        if not out.exists():
            return {"failed": done.stderr[-2000:], "files": len(files)}
        records = json.loads(out.read_text())["records"]
    counts = Counter(record["status"] for record in records)
    faults = {record["name"]: f"{record['reason']}: {record['message']}"[:500] for record in records
              if record["status"] == "failed"}  # fmt: skip
    return {"files": len(files), **dict(sorted(counts.items())), "faults": faults}


def alone(case: Case) -> Graph | None:
    """The graph of one operator; None where no kernel holds it."""
    builder = Builder()
    operands = [builder.parameter(f"x{place}", type_) for place, type_ in enumerate(case.bound)]
    try:
        graph = Graph(case.op.name, tuple(operands), builder.node(case.op, operands, case.attrs).outs)
        check(to_desc(graph, "gpu"))
    except (GraphKernelError, KernelgenError):
        return None
    return graph
