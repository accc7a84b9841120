"""Packets of an operator and the arithmetic on shapes before it: same numbers, and a reason where there is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graphkernel as gk
from graphkernel.ops import OPS
from graphkernel.options import Options
from graphkernel.passes.base import Context
from graphkernel.passes.shape.kernel_packet import kernel_packet
from kernelgen.tensor.bind import concrete_shape
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.text import parse
from kernelgen.tensor.verify import verify
from tests.support.golden import Block, blocks

FILE = Path(__file__).parents[2] / "golden" / "passes" / "kernel_packet.gk"
CASES = {block.case: block for block in blocks(FILE.read_text())}


def packed(block: Block) -> tuple[Graph, Graph, Context]:
    before, context = parse(block.before, OPS), Context(Options.parse(block.flags))
    return before, kernel_packet(before, context), context


def arrays_for(graph: Graph) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    shapes = [concrete_shape(value.type.shape, {"N": 3}) for value in graph.inputs]
    return [
        (rng.standard_normal(shape) if value.type.dtype.is_float else rng.integers(0, 3, shape)).astype(
            value.type.dtype.numpy
        )
        for shape, value in zip(shapes, graph.inputs, strict=True)
    ]


@pytest.mark.parametrize("case", CASES)
def test_the_numbers_stay_and_a_second_run_changes_nothing(case: str) -> None:
    before, after, context = packed(CASES[case])
    verify(after)
    assert kernel_packet(after, context) is after
    arrays = arrays_for(before)
    for found, expected in zip(evaluate(after, arrays), evaluate(before, arrays), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_packet_runs() -> None:
    before, after, _ = packed(CASES["arithmetic that two operators need is computed in each"])
    arrays = arrays_for(before)
    for found, expected in zip(gk.compile(after)(*arrays), evaluate(before, arrays), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("an excluded operator keeps its operands", "DynamicReshape is excluded by a packet_ops flag"),
        ("only the operators that a flag names", "DynamicReshape is excluded by a packet_ops flag"),
        ("an operator with several results is left alone", "DynamicQuant has 2 results, a packet has one"),
        ("a symbol that no operand has in its shape", "no operand of the packet has the symbol N in its shape"),
    ],
)
def test_the_log_says_why_there_is_no_packet(case: str, reason: str) -> None:
    _, _, context = packed(CASES[case])
    assert [(decision.code, decision.message) for decision in context.log] == [("not-packed", reason)]


def test_what_is_written_in_place_is_not_packed() -> None:
    text = """graph f(p: i64[2], x: f32[N, 4]) {
      s: i64[2] = Shape(x)
      a: i64[2] = Assign(p, s)
      return a -> p
    }"""
    graph = parse(text, OPS)
    context = Context()
    assert kernel_packet(graph, context) is graph
    assert "writes into an operand" in next(iter(context.log)).message
