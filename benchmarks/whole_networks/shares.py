"""The steps of a compiled network, each with what it computes, what it moves, and the time it takes on one thread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import graphkernel as gk
from graphkernel.report.entries import bytes_moved
from graphkernel.report.page.story import StoryStep
from graphkernel.runtime.measure import StepTime, profile
from kernelgen.native.team import Limited
from kernelgen.tensor.bind import bind
from kernelgen.tensor.dims import product
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operators.matmul import BATCH_MATMUL, MATMUL, MATMUL_INTEGER
from kernelgen.tensor.operators.nn import CONV2D, is_nhwc
from kernelgen.tensor.types import Dim, evaluate

MOST_WORDS = 6


@dataclass(frozen=True)
class Row:
    """Equal steps: what they compute, who runs them, how many; ms, GFLOP of products and GB of all of them together."""

    operators: str
    runner: str
    count: int
    milliseconds: float
    gigaflop: float
    gigabytes: float


def shares(model: Path, arrays: Sequence[np.ndarray[Any, Any]], rounds: int) -> list[dict[str, Any]]:
    """The rows of ours on a network, the dearest first; the least times of so many rounds."""
    executable = gk.compile(gk.load(model), threads=1)
    assert executable.report.story is not None, "it was compiled here"
    told = {step.name: step for step in executable.report.story().steps}
    sizes = bind(executable.graph, arrays)
    with Limited(1):
        times = profile(executable, arrays, rounds)
    alike: dict[tuple[object, ...], list[tuple[StepTime, StoryStep]]] = {}
    for time in times:
        if (step := told.get(time.name)) is not None:
            key = step.runner, words(step.operators), moved(step, sizes), flops(step.operators, sizes)
            alike.setdefault(key, []).append((time, step))
    rows = [_row(each, sizes) for each in alike.values()]
    return [asdict(row) for row in sorted(rows, key=lambda row: -row.milliseconds)]


def _row(alike: Sequence[tuple[StepTime, StoryStep]], sizes: Mapping[str, int]) -> Row:
    step, count = alike[0][1], len(alike)
    return Row(
        words(step.operators), "ours" if step.kernel else step.runner, count,
        round(1e3 * sum(time.seconds.least for time, _ in alike), 4),
        round(count * flops(step.operators, sizes) / 1e9, 6), round(count * moved(step, sizes) / 1e9, 6),
    )  # fmt: skip


def words(operators: Iterable[Node]) -> str:
    """``2 BatchMatMul, Add``: how often an operator is there, in order; of many the first ones and how many more."""
    found = Counter(node.op.name for node in operators)
    named = [name if count == 1 else f"{count} {name}" for name, count in found.items()]
    more = [f"{len(named) - MOST_WORDS} more"] if len(named) > MOST_WORDS else []
    return ", ".join([*named[:MOST_WORDS], *more])


def flops(operators: Iterable[Node], sizes: Mapping[str, int]) -> int:
    """The multiplications and additions of products and convolutions; all else counts as none."""
    return sum(int(2 * evaluate(node.types[0].size, sizes) * evaluate(_terms(node), sizes)) for node in operators)


def _terms(node: Node) -> Dim:
    """Of each sum of products."""
    if node.op in (MATMUL, BATCH_MATMUL, MATMUL_INTEGER):
        return node.args[0].type.shape[-2 if node.attrs.get("transpose_a", False) else -1]
    if node.op is CONV2D:
        weights = node.args[1].type.shape
        return product(weights[:-1] if is_nhwc(node.attrs) else weights[1:])
    return 0


def moved(step: StoryStep, sizes: Mapping[str, int]) -> int:
    """Bytes of what a step is given and of what others take of it; what it needs inside counts as none."""
    made = {value for node in step.nodes for value in node.outs}
    taken = {value for node in step.nodes for value in node.args}
    ends: list[Value] = [*(taken - made), *(made - taken)]
    return int(evaluate(bytes_moved(ends), sizes))
