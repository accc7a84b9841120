from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from graphkernel import ops
from graphkernel.declarations import builtin_catalogue
from graphkernel.frontends.trace import spec, trace
from graphkernel.options import Options
from graphkernel.patterns.ranges import INFINITY, NON_NEGATIVE, POSITIVE, Range, Ranges, bounded
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Graph
from tests.support.random_programs import programs


def range_of(function: Any, dtype: str = "float32") -> Range:
    graph = trace(function, spec((4, 8), dtype))
    return Ranges().of(graph.outputs[0])


@pytest.mark.parametrize(
    ("function", "within"),
    [
        (ops.exp, NON_NEGATIVE),
        (ops.abs, NON_NEGATIVE),
        (lambda x: x * x, NON_NEGATIVE),
        (lambda x: ops.exp(x) + 1.0, POSITIVE),
        (lambda x: ops.reduce_sum(ops.exp(x), axis=-1), NON_NEGATIVE),
        (lambda x: ops.maximum(x, 1.0), Range(0.9)),
        (lambda x: ops.tanh(x) * 3.0, Range(-3.2, 3.2)),
        (lambda x: 1.0 / (1.0 + ops.exp(x)), Range(-0.0, 1.1)),
        (lambda x: ops.minimum(ops.maximum(ops.cast(x > 0, "float32"), 0.0), 1.0), bounded(-0.1, 1.1)),
        (lambda x: ops.sqrt(ops.abs(x)), NON_NEGATIVE),
        (lambda x: ops.reshape(ops.select(x > 0, ops.exp(x), 2.0), (32,)), NON_NEGATIVE),
    ],
)
def test_what_is_known(function: Any, within: Range) -> None:
    assert range_of(function) in within


@pytest.mark.parametrize(
    "function",
    [lambda x: x, lambda x: x - ops.exp(x), ops.log, lambda x: ops.exp(x) - ops.exp(x), lambda x: 1.0 / ops.exp(x)],
)
def test_what_is_not_known(function: Any) -> None:
    assert range_of(function) not in NON_NEGATIVE


def test_underflow_is_not_positive() -> None:
    assert range_of(lambda x: ops.maximum(x, 1e-30) * 1e-30) not in POSITIVE
    assert range_of(lambda x: ops.minimum(ops.maximum(x, 1.0), 2.0) * 1e30 * 1e30).high == INFINITY


@given(program=programs())
@settings(max_examples=60)
def test_every_value_is_in_its_range(program: tuple[Graph, list[np.ndarray]]) -> None:
    graph, arrays = program
    ranges = Ranges()
    everything = Graph("all", graph.inputs, tuple(value for node in graph.operators for value in node.outs))
    for value, array in zip(everything.outputs, evaluate(everything, arrays), strict=True):
        if array.size and array.dtype.kind != "c":
            wide, range_ = array.astype(np.float64), ranges.of(value)
            inside = (wide >= range_.low) & (wide <= range_.high) | (np.isnan(wide) & range_.nan)
            assert inside.all(), f"{value.node}: {wide[~inside][0]} is not in {range_}"


def test_a_proved_fact_lets_a_rule_fire() -> None:
    def net(x: Any) -> Any:
        return ops.sqrt(ops.exp(x)) * ops.sqrt(ops.exp(x)), ops.sqrt(x) * ops.sqrt(x)

    catalogue = builtin_catalogue()
    simplify = next(entry for entry in catalogue.passes if entry.name == "arithmetic_simplify")
    context = catalogue.context(Options.parse("--exact_precision_mode=false"))
    graph = next(entry for entry in catalogue.passes if entry.name == "graph_kernel_cse")(
        trace(net, spec((4,))), context
    )
    assert [node.op.name for node in simplify(graph, context).operators] == ["Exp", "Sqrt", "Mul"]
