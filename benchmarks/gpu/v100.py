"""``python -m benchmarks v100 --corpus FOLDER --json OUT``: AKG's published times on a V100 beside estimates of ours.

AKG's time and the bytes that it moved mean a share of the V100's peak bandwidth. Ours is a share of the same peak: the bytes
over the time that the model of the GPU target gives for a V100. Nothing is measured here. The compiler no longer knows the
V100, so registers are those of sm_90.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import kernelgen
from kernelgen.desc import KernelDesc
from kernelgen.desc_json import load_desc
from kernelgen.desc_rules import reduced_axes
from kernelgen.errors import KernelgenError
from kernelgen.targets.gpu.machines import MACHINES
from kernelgen.vocabulary import ELEMENTWISE, REDUCTIONS

MACHINE = "V100"
TIMES = "akg_corpus_v100_us.json"  # beside the folder of the corpus
LARGE = 1 << 20  # bytes; smaller kernels are the launch and little else
MOVES = ("Reshape", "ExpandDims", "Squeeze", "BroadcastTo", "Tile", "EquivFormat", "InplaceAssign", "Assign")
Record = dict[str, Any]


def run(corpus: Path, tiny: bool) -> Record:
    """The record: every kernel with both times, and the classes."""
    published: Mapping[str, Record] = json.loads((corpus.parent / TIMES).read_text())
    files = [corpus / name for name in sorted(published) if (corpus / name).exists()]
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        found = _told(
            pool.map(partial(estimated, machine=MACHINE), files[:4] if tiny else files, chunksize=4), len(files)
        )
        rows = [
            row | {"akg_us": published[row["name"]]["avg_us"], "bytes": published[row["name"]]["bytes"]}
            for row in found
        ]
    device = MACHINES[MACHINE]
    return {
        "machine": device.name,
        "peak_bandwidth": device.bandwidth,
        "attainable": device.attainable,
        "is_estimate": True,
        "kernels": rows,
        "classes": classes(rows, device.bandwidth),
    }


def _told(rows: Iterable[Record], total: int) -> Iterator[Record]:
    """The rows as they come, a line of progress for every hundred."""
    for count, row in enumerate(rows, 1):
        if count % 100 == 0:
            print(f"{count} of {total} kernels", flush=True)
        yield row


def estimated(path: Path, machine: str) -> Record:
    """Class and estimated microseconds of one file at its full size; None and the reason where there are none."""
    try:
        desc = load_desc(path)
        kernel = kernelgen.compile(desc, "gpu")
        found = kernel.estimate(machine)
        assert found is not None, "the target has launches"
    except (KernelgenError, MemoryError) as fault:
        return {
            "name": path.name,
            "class": "",
            "estimated_us": None,
            "reason": f"{type(fault).__name__}: {fault}"[:200],
        }
    bounds = sorted({launch.bound for launch in found.launches})
    return {
        "name": path.name,
        "class": class_of(desc),
        "estimated_us": round(found.seconds * 1e6, 3),
        "launches": len(found.launches),
        "bounds": bounds,
    }


def class_of(desc: KernelDesc) -> str:
    """What a kernel is mostly about, by its operators."""
    names = {op.name for op in desc.ops}
    if names & {"MatMul", "BatchMatMul", "Conv2D"}:
        return "product"
    if names - ELEMENTWISE.keys() - REDUCTIONS.keys() - {"Transpose", *MOVES}:
        return "indexed and other"
    reductions = [op for op in desc.ops if op.name in REDUCTIONS]
    along_rows = [len(op.inputs[0].shape) - 1 in reduced_axes(op) for op in reductions]
    if reductions:
        return "reduction of rows" if all(along_rows) else "reduction of columns" if not any(along_rows) else "both"
    return "transpose" if "Transpose" in names else "element-wise"


def classes(rows: Sequence[Record], peak: float) -> Record:
    """For each class: how many kernels, and the shares of the peak, of all kernels and of those that move a megabyte."""
    return {name: _class(name, rows, peak) for name in sorted({row["class"] for row in rows if row["class"]})}


def _class(name: str, rows: Sequence[Record], peak: float) -> Record:
    own = [row for row in rows if row["class"] == name]
    large = [row for row in own if row["bytes"] >= LARGE]
    return {
        "kernels": len(own),
        "all": dict(_shares(own, peak)),
        "large_kernels": len(large),
        "large": dict(_shares(large, peak)),
    }


def _shares(rows: Sequence[Record], peak: float) -> Iterator[tuple[str, float | None]]:
    """Geometric means of the shares of the peak, and of AKG's time over the estimate."""
    for name, key in (("akg", "akg_us"), ("estimated", "estimated_us")):
        yield name, geometric_mean([row["bytes"] / (row[key] * 1e-6) / peak for row in rows]) if rows else None
    yield "akg_over_estimated", geometric_mean([row["akg_us"] / row["estimated_us"] for row in rows]) if rows else None
