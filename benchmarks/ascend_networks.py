"""``python -m benchmarks ascend --json OUT``: whole networks converted for an Ascend A2, every kernel simulated.

For each network what ``graphkernel convert --optimize=ascend_oriented`` does: fuse, make every distinct kernel, run it in
the simulator against the reference, write all files. Times of kernels are estimates, never measured by us.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import graphkernel as gk
from benchmarks.networks import NETWORKS
from examples import export_minilm_onnx, resnet50
from examples.minilm import INNER, LAYERS, WIDTH
from examples.networks.bert import Bert
from examples.networks.gpt import Gpt
from graphkernel.export.kernels import export, maker_for
from graphkernel.export.summary import FAILED, PASSED, VENDOR, KernelLine
from kernelgen.tensor.graph import Graph

MACHINE, LEVEL = "910B", 2
WORDS, PLACES, TOKENS = 1000, 512, 128


def minilm() -> Graph:
    """The sentence encoder with random weights, for any number of sentences and tokens."""
    return _loaded(export_minilm_onnx.encoder(drawn_weights()))


def resnet() -> Graph:
    """ResNet-50 of the onnx package with random weights, one image."""
    return _loaded(resnet50.model())


def _loaded(model: onnx.ModelProto) -> Graph:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{model.graph.name}.onnx"
        onnx.save(model, path)
        return gk.load(path)


def drawn_weights() -> dict[str, np.ndarray]:
    """Weights of the encoder; kernels do not depend on them."""
    tables = {"word": WORDS, "position": PLACES, "token_type": 2}
    shapes: dict[str, tuple[int, ...]] = {
        f"embeddings.{name}_embeddings.weight": (rows, WIDTH) for name, rows in tables.items()
    }
    norms = ["embeddings.LayerNorm"]
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        norms += [f"{name}.attention.output.LayerNorm", f"{name}.output.LayerNorm"]
        parts = [f"{name}.attention.{part}" for part in ("self.query", "self.key", "self.value", "output.dense")]
        dense = {part: (WIDTH, WIDTH) for part in parts}
        dense |= {f"{name}.intermediate.dense": (INNER, WIDTH), f"{name}.output.dense": (WIDTH, INNER)}
        shapes |= {f"{part}.weight": shape for part, shape in dense.items()}
        shapes |= {f"{part}.bias": shape[:1] for part, shape in dense.items()}
    shapes |= {f"{norm}.{part}": (WIDTH,) for norm in norms for part in ("weight", "bias")}
    random = np.random.default_rng(0)
    return {name: (random.standard_normal(shape) * 0.05).astype(np.float32) for name, shape in shapes.items()}


GRAPHS: Mapping[str, Callable[[], Graph]] = {
    "minilm": minilm, "resnet50": resnet,
    "bert_layer_float16": lambda: Bert(layers=1, vocabulary=WORDS, dtype="float16").encoder(1, TOKENS),
    "gpt_block_float16": lambda: Gpt(dtype="float16").block(1, TOKENS),
}  # fmt: skip
TINY: Mapping[str, Callable[[], Graph]] = {
    "bert": NETWORKS["bert_encoder"].tiny, "resnet": NETWORKS["resnet_inference"].tiny,
}  # fmt: skip


def run(names: Sequence[str] = (), *, tiny: bool = False) -> dict[str, Any]:
    """The record of the named networks, or of all. ``ArithmeticError`` when a kernel fails in the simulator."""
    graphs = TINY if tiny else GRAPHS
    return {name: measured(name, graphs[name]()) for name in names or graphs}


def measured(name: str, graph: Graph) -> dict[str, Any]:
    """One network: counts, seconds, and a row for each distinct kernel."""
    start = time.perf_counter()
    fused = gk.optimize(graph, LEVEL, "ascend")
    seconds = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        _, found = export(graph, fused, Path(folder), MACHINE, maker_for(MACHINE), _tell)
    print(found.headline, flush=True)
    wrong = [str(kernel) for kernel in found.kernels if kernel.status == FAILED]
    if wrong:
        raise ArithmeticError(f"{name}: " + "; ".join(wrong))
    return {
        "operators": len(graph.operators),
        "machine": MACHINE,
        "kernel_calls": sum(len(kernel.calls) for kernel in found.kernels),
        "kernels": len(found.kernels),
        "passed": found.count(PASSED),
        "refused": found.count(VENDOR),
        "left_to_the_vendor": dict(found.outside),
        "views": found.views,
        "optimize_seconds": round(seconds, 2),
        "seconds": found.seconds,
        "estimated_microseconds": round(found.microseconds, 2),
        "rows": [_row(kernel) for kernel in found.kernels],
    }


def _tell(done: int, total: int, line: KernelLine) -> None:
    print(f"{done}/{total} {line}", flush=True)


def _row(kernel: KernelLine) -> dict[str, Any]:
    row: dict[str, Any] = {"kernel": kernel.name, "calls": len(kernel.calls), "status": kernel.status}
    if kernel.run is None:
        return row | {"reason": kernel.reason}
    return row | {
        "inputs": list(kernel.inputs),
        "simulated_shapes": [list(shape) for shape in kernel.run.shapes],
        "scaled": kernel.run.scaled,
        "estimated_microseconds": round(kernel.run.microseconds, 3),
        "bound_by": kernel.run.bound_by,
        "blocks": kernel.blocks,
        "unified_buffer": kernel.unified_buffer,
        "largest_error": kernel.run.largest_error,
    }
