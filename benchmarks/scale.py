"""``python -m benchmarks scale --json OUT``: how ``optimize`` grows with the graph, up to tens of thousands of nodes.

Four shapes of graph at several sizes. Each runs in a process of its own: processor seconds, peak memory, seconds of each
pass, and the exponent of growth from each size to the next (1 is linear).
"""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import graphkernel as gk
from graphkernel import ops
from graphkernel.declarations import builtin_catalogue
from graphkernel.ops import Tensor
from graphkernel.step_hooks import Clock
from kernelgen.tensor.graph import Builder, Graph
from kernelgen.tensor.types import TensorType, dtype

SIZES = (1_000, 3_000, 10_000, 30_000, 50_000)
TINY_SIZES = (100, 200)
WIDTH = 64
OPERATORS_OF_A_LAYER = 37


def transformer(nodes: int) -> Graph:
    """Encoder layers, one behind the other: matrix products between normalisations, softmax and activations."""

    def net(x: Tensor) -> Tensor:
        weight, bias = (np.ones(shape, np.float32) for shape in ((WIDTH, WIDTH), (WIDTH,)))
        for _ in range(max(1, nodes // OPERATORS_OF_A_LAYER)):
            x = _layer(x, weight, bias)
        return x

    return _traced("transformer", net, 1)


def _layer(x: Tensor, weight: np.ndarray, bias: np.ndarray) -> Tensor:
    def dense(y: Tensor) -> Tensor:
        return ops.bias_add(ops.matmul(y, weight), bias)

    def heads(y: Tensor) -> Tensor:
        return ops.transpose(ops.reshape(y, (WIDTH, 4, WIDTH // 4)), (1, 0, 2))

    query, key, value = (heads(dense(x)) for _ in range(3))
    scores = ops.softmax(ops.matmul(query, key, transpose_b=True) * 0.25 + x)
    mixed = ops.reshape(ops.transpose(ops.matmul(scores, value), (1, 0, 2)), x.shape)
    x, _, _ = ops.layer_norm(dense(mixed) + x, bias, bias)
    y, _, _ = ops.layer_norm(dense(ops.gelu(dense(x), approximate="tanh")) + x, bias, bias)
    return ops.tanh(y) * ops.sigmoid(y) + ops.reduce_max(y, axis=-1, keep_dims=True) * ops.exp(-ops.abs(y))


def chain(nodes: int) -> Graph:
    """One operator behind the other, all elementwise."""
    steps: Sequence[Callable[[Tensor], Tensor]] = (ops.tanh, ops.neg, ops.abs, lambda x: x * 1.5, lambda x: x + 0.5)

    def net(x: Tensor) -> Tensor:
        for index in range(nodes):
            x = steps[index % len(steps)](x)
        return x

    return _traced("chain", net, 1)


def fan_out(nodes: int) -> Graph:
    """One value with very many users, whose results are added up in a tree."""

    def net(x: Tensor) -> Tensor:
        shared = ops.tanh(x)
        level = [ops.exp(shared * (1.0 + index)) for index in range(nodes // 3)]
        while len(level) > 1:
            level = [a + b for a, b in zip(level[::2], level[1::2], strict=False)] + level[len(level) & ~1 :]
        return level[0]

    return _traced("fan_out", net, 1)


def branches(nodes: int) -> Graph:
    """Many short branches side by side, each with an input, a reduction and an output of its own."""
    steps = 10

    def net(*inputs: Tensor) -> tuple[Tensor, ...]:
        return tuple(_branch(x) for x in inputs)

    return _traced("branches", net, max(1, nodes // steps))


def _branch(x: Tensor) -> Tensor:
    y = ops.exp(x - ops.reduce_max(x, axis=-1, keep_dims=True))
    return ops.tanh(ops.abs(y / ops.reduce_sum(y, axis=-1, keep_dims=True)) * 0.5 + 1.0) * x


def _traced(name: str, net: Callable[..., Any], inputs: int) -> Graph:
    builder = Builder()
    type_ = TensorType((WIDTH, WIDTH), dtype("float32"))
    values = [builder.parameter(f"x{index}", type_) for index in range(inputs)]
    found = net(*(Tensor(value, builder) for value in values))
    outputs = found if isinstance(found, tuple) else (found,)
    return Graph(name, tuple(values), tuple(tensor.value for tensor in outputs))


SHAPES: Mapping[str, Callable[[int], Graph]] = {
    "transformer": transformer, "chain": chain, "fan_out": fan_out, "branches": branches,
}  # fmt: skip


def run(names: Sequence[str] = (), *, tiny: bool = False) -> dict[str, Any]:
    """All sizes of the named shapes, or of all; each measured in a fresh process."""
    return {name: _shape(name, TINY_SIZES if tiny else SIZES) for name in names or SHAPES}


def _shape(name: str, sizes: Sequence[int]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for size in sizes:
        command = [sys.executable, "-c", f"from benchmarks import scale; scale.main({name!r}, {size})"]
        row = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        if rows:
            last = rows[-1]
            growth = math.log(row["seconds"] / last["seconds"]) / math.log(row["operators"] / last["operators"])
            row["exponent"] = round(growth, 2)
        rows.append(row)
        print(f"{name:12s}", {key: row[key] for key in row if key != "passes"}, flush=True)
    return rows


def main(name: str, nodes: int) -> None:
    """Measures one graph in this process and prints the row."""
    builtin_catalogue()  # read once, before the clock runs
    graph = SHAPES[name](nodes)
    before = _peak()
    operators, clock = len(graph.operators), Clock()
    start = time.process_time()  # of the processor, so that other programs do not count
    fused = gk.optimize(graph, 2, hooks=[clock])
    seconds = time.process_time() - start
    slowest = sorted(clock.seconds.items(), key=lambda entry: -entry[1])
    row = {
        "operators": operators, "seconds": round(seconds, 3), "peak_megabytes": round(_peak() / 1e6, 1),
        "megabytes_before": round(before / 1e6, 1), "launches": len(fused.operators),
        "passes": {step: round(spent, 4) for step, spent in slowest if spent >= 0.0005},
    }  # fmt: skip
    print(json.dumps(row))


def _peak() -> int:
    """The most memory that the process has held, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
