"""``python -m benchmarks v100 --corpus FOLDER --json OUT``: AKG's published times on a V100 beside estimates of ours.

AKG's time and the bytes that it moved mean a share of the V100's peak bandwidth. Ours is a share of the same peak: the bytes
over the time that the model of the GPU target gives for a V100. Nothing is measured here. The compiler no longer knows the
V100, so registers are those of sm_90.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from types import FrameType
from typing import Any

import kernelgen
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.read import load_desc
from kernelgen.composite.scalar_rules import ELEMENTWISE, REDUCTIONS
from kernelgen.errors import KernelgenError
from kernelgen.machines.gpu.timed import MACHINES, TimedMachine
from kernelgen.targets.entries import Estimate
from kernelgen.tensor.operators.type_rules import reduced_axes

MACHINE = "V100"
TIMES = "akg_corpus_v100_us.json"  # beside the folder of the corpus
LARGE = 1 << 20  # bytes; smaller kernels are the launch and little else
MOVES = ("Reshape", "ExpandDims", "Squeeze", "BroadcastTo", "Tile", "EquivFormat", "InplaceAssign", "Assign")
LIMIT_SECONDS = 30.0
"""Processor time of a kernel: its compilation and the sample that is counted."""

TOLD = 100
"""Kernels between two lines of progress."""

Record = dict[str, Any]
Save = Callable[[Record], None]


def run(corpus: Path, tiny: bool, jobs: int, save: Save) -> Record:
    """The record: every kernel with both times, and the classes; ``save`` gets what there is after every hundred."""
    published: Mapping[str, Record] = json.loads((corpus.parent / TIMES).read_text())
    files = [corpus / name for name in sorted(published) if (corpus / name).exists()]
    rows: list[Record] = []
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        for found in pool.map(partial(estimated, machine=MACHINE), files[:4] if tiny else files):
            rows.append(_beside(found, published[found["name"]]))
            if len(rows) % TOLD == 0:
                print(f"{len(rows)} of {len(files)} kernels", flush=True)
                save(record_of(rows))
    return record_of(rows)


def record_of(rows: Sequence[Record]) -> Record:
    """The rows with what they are shares of, and their classes."""
    device = MACHINES[MACHINE]
    return {
        "machine": device.name,
        "peak_bandwidth": device.bandwidth,
        "attainable": device.attainable,
        "is_estimate": True,
        "kernels": list(rows),
        "classes": classes(rows, device.bandwidth),
    }


def _beside(found: Record, published: Record) -> Record:
    return found | {"akg_us": published["avg_us"], "bytes": published["bytes"]}


def estimated(path: Path, machine: str) -> Record:
    """Class and estimated microseconds of one file at its full size; None and the reason where there are none."""
    desc = load_desc(path)
    row: Record = {"name": path.name, "class": class_of(desc)}
    try:
        with limited(LIMIT_SECONDS):
            found = kernelgen.compile(desc, "gpu").estimate(machine)
        assert found is not None, "the target has launches"
    except (KernelgenError, MemoryError, TimeUp) as fault:
        return row | {"estimated_us": None, "reason": f"{type(fault).__name__}: {fault}"[:200]}
    return row | {
        "estimated_us": round(seconds(found, MACHINES[machine]) * 1e6, 3),
        "launches": len(found.launches),
        "bounds": sorted({launch.bound for launch in found.launches}),
    }


def seconds(found: Estimate, machine: TimedMachine) -> float:
    """The estimate of runs that are repeated, as the published ones were: arrays that fit the L2 stay there."""
    fits = sum(launch.moved for launch in found.launches) <= machine.l2_bytes
    return sum(launch.warm_seconds if fits else launch.seconds for launch in found.launches)


class TimeUp(Exception):
    """A kernel took its limit of processor time."""


@contextmanager
def limited(seconds: float) -> Generator[None]:
    """Raises TimeUp in the body when this process has computed for so long in it; in the main thread alone."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeUp(f"not done after {seconds:g} s of processor time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def class_of(desc: KernelDesc) -> str:
    """What a kernel is mostly about, by its operators."""
    found = {node.op for node in desc.operators}
    names = {op.name for op in found}
    if names & {"MatMul", "BatchMatMul", "Conv2D"}:
        return "product"
    if {op.name for op in found - ELEMENTWISE.keys() - REDUCTIONS.keys()} - {"Transpose", *MOVES}:
        return "indexed and other"
    reductions = [node for node in desc.operators if node.op in REDUCTIONS]
    along_rows = [len(node.args[0].shape) - 1 in reduced_axes(node) for node in reductions]
    if reductions:
        return "reduction of rows" if all(along_rows) else "reduction of columns" if not any(along_rows) else "both"
    return "transpose" if "Transpose" in names else "element-wise"


def classes(rows: Sequence[Record], peak: float) -> Record:
    """For each class: how many kernels, and the shares of the peak, of all kernels and of those that move a megabyte."""
    return {name: _class(name, rows, peak) for name in sorted({row["class"] for row in rows})}


def _class(name: str, rows: Sequence[Record], peak: float) -> Record:
    own = [row for row in rows if row["class"] == name and row["estimated_us"]]
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
