"""``python -m benchmarks networks --json OUT``: what the levels make of whole networks, on every target.

For each network, target and level: launches and bytes moved before and after, the time of ``optimize``, and how far the
numbers of the optimized graph are from those of the graph, at real size.
"""

from __future__ import annotations

import datetime
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

import numpy as np

import graphkernel as gk
import kernelgen
from examples.networks.bert import Bert
from examples.networks.gpt import Gpt
from examples.networks.llama import Llama
from examples.networks.resnet import Bottleneck, ResNet
from examples.networks.weights import draw
from graphkernel.declarations import builtin_catalogue
from graphkernel.handoff import to_desc
from graphkernel.report.difference import largest_difference
from graphkernel.report.entries import bytes_moved
from kernelgen.tensor.graph import Graph, Node
from kernelgen.tensor.operator import Kind

Arrays = Sequence[np.ndarray[Any, Any]]
LEVELS = range(4)
TARGETS = ("cpu", "gpu", "ascend")
TOLERANCE, HALF_TOLERANCE = 1e-4, 1e-2  # of the largest magnitude of an output
HALF = "float16"
NO_LAUNCH = (Kind.VIRTUAL, Kind.RESHAPE)  # names, and views of the same elements


@dataclass(frozen=True)
class Network:
    """A network at real size, at a size for tests, what the real size is in words, and how exact its numbers are."""

    real: Callable[[], Graph]
    tiny: Callable[[], Graph]
    size: str
    tolerance: float = TOLERANCE


SMALL_BERT = Bert(layers=1, hidden=8, heads=2, inner=12, vocabulary=9, positions=6)
NETWORKS: Mapping[str, Network] = {
    "bert_encoder": Network(
        lambda: Bert().encoder(1, 128), lambda: SMALL_BERT.encoder(2, 5), "BERT-base, 1 x 128 tokens"
    ),
    "bert_training": Network(
        lambda: Bert().training(2, 128), lambda: SMALL_BERT.training(2, 5), "BERT-base, 2 x 128 tokens, AdamWeightDecay"
    ),
    "resnet_inference": Network(
        lambda: ResNet().inference(1, 224), lambda: ResNet((1, 1), 2, 3).inference(2, 12), "ResNet-50, 1 x 3 x 224 x 224"
    ),
    "bottleneck_training": Network(
        lambda: Bottleneck().training(8, 56),
        lambda: Bottleneck(channels=2).training(2, 4),
        "8 x 256 x 56 x 56, AdamWeightDecay",
    ),
    "llama_block": Network(
        lambda: Llama().block(1, 128), lambda: Llama(16, 4, 2, 24).block(2, 5), "Llama 3 8B, 1 x 128 tokens"
    ),
    "bert_encoder_float16": Network(
        lambda: Bert(dtype=HALF).encoder(1, 128),
        lambda: replace(SMALL_BERT, dtype=HALF).encoder(2, 5),
        "BERT-base, 1 x 128 tokens",
        HALF_TOLERANCE,
    ),
    "gpt_block_float16": Network(
        lambda: Gpt(dtype=HALF).block(1, 197), lambda: Gpt(16, 2, dtype=HALF).block(2, 5), "GPT-2, 1 x 197 tokens",
        HALF_TOLERANCE,
    ),
    "llama_block_float16": Network(
        lambda: Llama(dtype=HALF).block(1, 128), lambda: Llama(16, 4, 2, 24, dtype=HALF).block(2, 5),
        "Llama 3 8B, 1 x 128 tokens", HALF_TOLERANCE,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Launches:
    """What runs: kernels, operators outside of kernels, how often both are launched, and the bytes that both move."""

    kernels: int
    outside: int
    launches: int
    bytes: int

    @staticmethod
    def of(graph: Graph, target: str) -> Launches:
        """Counts a graph; views and assignments launch nothing, and a kernel of a gpu may be launched in parts."""
        launched = [node for node in graph.operators if node.body is not None or node.op.kind not in NO_LAUNCH]
        kernels = [node for node in launched if node.body is not None]
        moved = sum(int(str(bytes_moved((*node.args, *node.outs)))) for node in launched)
        outside = len(launched) - len(kernels)
        parts = kernel_launches(kernels, target) if target == "gpu" else len(kernels)
        return Launches(len(kernels), outside, outside + parts, moved)


def kernel_launches(kernels: Sequence[Node], target: str) -> int:
    """The launches of kernels of a graph; equal ones are made once."""
    calls = Counter(to_desc(node, target).renamed("kernel") for node in kernels)
    return sum(count * _launches(desc, target) for desc, count in calls.items())


@cache
def _launches(desc: kernelgen.KernelDesc, target: str) -> int:
    """Levels share most kernels."""
    return kernelgen.compile(desc, target).launches


def run(names: Sequence[str] = (), *, tiny: bool = False) -> dict[str, Any]:
    """The record of the named networks, or of all. ``ArithmeticError`` when numbers change."""
    builtin_catalogue()  # read once, before the clock runs
    return {name: measured(name, tiny) for name in names or NETWORKS}


def measured(name: str, tiny: bool) -> dict[str, Any]:
    """One network on all targets and levels."""
    network = NETWORKS[name]
    graph = (network.tiny if tiny else network.real)()
    arrays = draw(graph)
    expected = gk.evaluate(graph, arrays)
    known = [(graph, 0.0)]
    targets: dict[str, Any] = {}
    for target in TARGETS:
        for level in LEVELS:
            start = time.process_time()  # of the processor, so that other programs do not count
            fused = gk.optimize(graph, level, target)
            seconds = time.process_time() - start
            row = asdict(Launches.of(fused, target)) | {
                "optimize_seconds": round(seconds, 4),
                "largest_error": _error(fused, arrays, expected, known, network.tolerance),
            }
            targets.setdefault(target, {})[f"level{level}"] = row
            print(f"{name:20s} {target:7s} {level}", row, flush=True)
    before = asdict(Launches.of(graph, TARGETS[0]))
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    size = "tiny" if tiny else network.size
    return {"size": size, "date": today, "operators": len(graph.operators), "before": before} | targets


def _error(graph: Graph, arrays: Arrays, expected: Arrays, known: list[tuple[Graph, float]], tolerance: float) -> float:
    """The largest difference relative to the largest magnitude of an output; equal graphs are evaluated once."""
    found = next((error for other, error in known if other == graph), None)
    if found is None:
        pairs = zip(gk.evaluate(graph, arrays), expected, strict=True)
        found = max(largest_difference(got, want) for got, want in pairs)
        known.append((graph, found))
    if not found <= tolerance:
        raise ArithmeticError(f"{graph.name}: the optimized graph is off by {found:.1e}")
    return found
