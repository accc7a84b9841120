"""``python -m benchmarks gpu_networks --json OUT``: whole networks with target gpu, kernel by kernel, at real size.

The PTX interpreter cannot run such a network, so each of its kernels is verified by itself: scaled down whole, then a sample
of the blocks of a large one (docs/gpu.md), and compiled for every architecture at the size that the network has. That the
kernels together make the network is what ``benchmarks networks`` shows at real size, on the meaning of every operator, and
``tests/graphkernel/runtime/test_gpu_networks.py`` at tiny size, in the interpreter; for :data:`WHOLE` a run of all of it.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import onnx

import graphkernel as gk
from benchmarks.gpu.compiles import ARCHS, Record, fault, resources
from benchmarks.gpu.descriptions import LEVEL, TARGET
from benchmarks.networks import NETWORKS, NO_LAUNCH
from examples import export_minilm_onnx, resnet50
from graphkernel.handoff import key_of, to_desc
from graphkernel.report.difference import largest_difference
from kernelgen.composite.description import KernelDesc
from kernelgen.tensor.graph import Graph
from kernelgen.verify import Status, verify


def minilm() -> Graph:
    """The sentence encoder with its weights, for any number of sentences and tokens."""
    with tempfile.TemporaryDirectory() as folder:
        return gk.load(export_minilm_onnx.export(Path(folder) / "minilm.onnx"))


def resnet() -> Graph:
    """ResNet-50 of the onnx package with random weights."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "resnet50.onnx"
        onnx.save(resnet50.model(), path)
        return gk.load(path)


GRAPHS: Mapping[str, Callable[[], Graph]] = {"minilm": minilm, "resnet50": resnet} | {
    name: network.real for name, network in NETWORKS.items()
}
"""The networks of the demo, from ONNX, and those of ``benchmarks networks``."""

SENTENCE = np.array([[101, 1037, 2158, 102]])
"""[CLS] a man [SEP]"""

WHOLE: Mapping[str, Sequence[np.ndarray]] = {"minilm": (SENTENCE, np.ones_like(SENTENCE), np.zeros_like(SENTENCE))}
"""Networks of symbolic sizes that the interpreter runs whole, and what it runs them on: a minute."""

TINY: Mapping[str, Callable[[], Graph]] = {name: network.tiny for name, network in NETWORKS.items()}


def run(jobs: int, names: Sequence[str] = (), *, tiny: bool = False) -> Record:
    """The record of the named networks, or of all; ``failed`` names every kernel that is wrong or does not compile."""
    graphs = TINY if tiny else GRAPHS
    record: Record = {}
    failed: dict[str, str] = {}
    with ProcessPoolExecutor(jobs) as pool:
        for name in names or graphs:
            start = time.perf_counter()
            found = network(name, graphs[name](), pool)
            record[name] = found | {"seconds": round(time.perf_counter() - start)}
            failed |= {f"{name}/{kernel}": why for kernel, why in _failures(found["kernels"])}
            print(f"{name:20s}", {key: value for key, value in record[name].items() if key != "kernels"}, flush=True)
    for kernel, why in failed.items():
        print(f"{kernel}: {why}")
    return {"networks": record, "failed": failed}


def network(name: str, graph: Graph, pool: ProcessPoolExecutor) -> Record:
    """Compiles a network, then verifies its distinct kernels."""
    exe = gk.compile(graph, LEVEL, TARGET)
    fused = exe.graph
    calls: Counter[str] = Counter()
    distinct: dict[str, KernelDesc] = {}
    for node in fused.operators:
        if node.body is not None:
            desc = to_desc(node, TARGET)
            key = key_of(desc)
            calls[key] += 1
            distinct.setdefault(key, desc)
    rows: list[Record] = []
    for key, row in zip(distinct, pool.map(verified, distinct.values()), strict=True):
        rows.append({"kernel": distinct[key].name, "calls": calls[key]} | row)
        print(f"\r{name}: {len(rows)} of {len(distinct)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    outside = Counter(node.op.name for node in fused.operators if node.body is None and node.op.kind not in NO_LAUNCH)
    whole = {"largest_error": _whole(exe, graph, WHOLE[name])} if name in WHOLE else {}
    return {
        "operators": len(graph.operators),
        "kernel_calls": sum(calls.values()),
        "outside": dict(sorted(outside.items())),
        "not_compiled": [str(entry) for entry in exe.report.fallbacks if entry.code != "host-numpy"],
        "passed": sum(row["status"] == Status.PASSED for row in rows),
        "how": dict(Counter(row["how"] for row in rows)),
        **whole,
        "kernels": rows,
    }


def _whole(exe: gk.Executable, graph: Graph, arrays: Sequence[np.ndarray]) -> float:
    """How far a run of all kernels in the interpreter is from the meaning of the graph, of the largest magnitude."""
    pairs = zip(exe(*arrays), gk.evaluate(graph, arrays), strict=True)
    return max(largest_difference(got, want) for got, want in pairs)


def verified(desc: KernelDesc) -> Record:
    """What verification says of a kernel, and what it takes on each architecture."""
    start = time.perf_counter()
    found = verify(desc, TARGET)
    row: Record = {
        "status": found.status.value,
        "how": _how(found.scaled, found.sampled),
        "max_error": found.max_error,
        "seconds": round(time.perf_counter() - start, 2),
    }
    if found.status is not Status.PASSED:
        row["reason"] = f"{found.reason}: {found.message}"[:1000]
    return row | resources(desc, ARCHS)


def _failures(rows: Sequence[Record]) -> Iterator[tuple[str, str]]:
    """Kernels that are wrong, that no kernel could be made of, or that take more than they may."""
    for row in rows:
        why = row.get("reason") or row.get("message") or fault(row)
        if why:
            yield row["kernel"], why


def _how(scaled: bool, sampled: Mapping[str, int]) -> str:
    """How much of a kernel ran: all of it, all of a smaller one, and perhaps a sample of the blocks of a large one."""
    return (
        "whole"
        if not scaled and not sampled
        else " and ".join(filter(None, ("scaled" * scaled, "sampled" * bool(sampled))))
    )
