"""Casts change places, bits do not."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pass_runs import as_kernel, checked, hard_values, same_bits

from graphkernel import ops
from graphkernel.decisions import DecisionLog
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops import Tensor
from graphkernel.passes.base import Context
from graphkernel.passes.precision.reorder_ops import INSENSITIVE, reorder_ops
from kernelgen.tensor.graph import Builder, Graph
from kernelgen.tensor.types import TensorType, dtype, sym

FLOATS = ("float16", "bfloat16", "float32", "float64")


def wide_work(graph: Graph) -> int:
    """The operators but Cast that give more than 16 bits."""
    return sum(node.op.name != "Cast" and node.out.type.dtype.bits > 16 for node in graph.operators)


OPERATORS: dict[str, Any] = {
    "Transpose": lambda x, y: ops.transpose(x, (1, 0)),
    "ExpandDims": lambda x, y: ops.expand_dims(x, 1),
    "Reshape": lambda x, y: ops.reshape(x, (x.shape[0] * 4,)),
    "Squeeze": lambda x, y: ops.squeeze(ops.expand_dims(x, 0), 0),
    "Tile": lambda x, y: ops.tile(x, (1, 2)),
    "Neg": lambda x, y: -x,
    "ReLU": lambda x, y: ops.relu(x),
    "Maximum": ops.maximum,
    "Minimum": lambda x, y: ops.minimum(x, y),
    "Select": lambda x, y: ops.select(ops.equal(ops.cast(x, "int8"), 0), x, y),
    "TransData": lambda x, y: ops.trans_data(
        ops.reshape(x, (4, x.shape[0])), src_format="DefaultFormat", dst_format="FRACTAL_NZ"
    ),
}

NAMES = sorted(op.name for op in INSENSITIVE)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("narrow", ["float16", "bfloat16"])
def test_narrowing_first(name: str, narrow: str) -> None:
    def net(x: Tensor, y: Tensor) -> Tensor:
        return ops.cast(OPERATORS[name](x, y), narrow)

    graph = trace(net, spec((16, 4)), spec((16, 4)))
    result = checked(reorder_ops, graph)
    assert wide_work(result) == 0 < wide_work(graph)
    same_bits(graph, result, [hard_values((16, 4), np.float32, seed) for seed in range(2)])


@pytest.mark.parametrize("name", sorted({*NAMES} - {"Select"}))
@pytest.mark.parametrize("narrow", ["float16", "bfloat16"])
def test_widening_last(name: str, narrow: str) -> None:
    def net(x: Tensor, y: Tensor) -> Tensor:
        return ops.exp(OPERATORS[name](ops.cast(x, "float32"), ops.cast(y, "float32")))

    graph = trace(net, spec((16, 4), narrow), spec((16, 4), narrow))
    result = checked(reorder_ops, graph)
    assert wide_work(result) == 1 < wide_work(graph)
    same_bits(graph, result, [hard_values((16, 4), dtype(narrow).numpy, seed) for seed in range(2)])


def test_the_decision_is_recorded() -> None:
    log = DecisionLog()
    reorder_ops(trace(lambda x: ops.cast(-x, "float16"), spec((4,))), Context(log=log))
    assert [(decision.code, decision.message) for decision in log] == [("cast-moved", "float16 before Neg")]


@st.composite
def nets(draw: st.DrawFn) -> Graph:
    """Moves, selections and casts of every float type; operands of several types are cast to one."""
    builder = Builder()
    extent = sym("N") if draw(st.booleans()) else 16
    types = [TensorType((extent, 4), dtype(draw(st.sampled_from(FLOATS)))) for _ in range(3)]
    inputs = [builder.parameter(f"x{i}", type_) for i, type_ in enumerate(types)]
    values = [Tensor(value, builder) for value in inputs]
    for _ in range(draw(st.integers(2, 14))):
        x, y = draw(st.sampled_from(values)), draw(st.sampled_from(values))
        kind = draw(st.integers(0, 5))
        if kind <= 1:
            values.append(ops.cast(x, draw(st.sampled_from(FLOATS))))
        elif kind == 2:
            values.append(draw(st.sampled_from((ops.neg, ops.relu)))(x))
        elif kind == 3:
            values.append(ops.transpose(ops.transpose(x, (1, 0)), (1, 0)))
        elif kind == 4:
            limit = draw(st.sampled_from((0.0, 0.5, 0.1, 6e4)))
            values.append(ops.maximum(x, limit))
        else:
            both = (x, ops.cast(y, x.dtype))
            values.append(draw(st.sampled_from((ops.maximum, lambda a, b: ops.select(a < b, b, a))))(*both))
    outputs = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
    return Graph("random", tuple(inputs), tuple(x.value for x in outputs))


@settings(max_examples=200)
@given(graph=nets(), kernel=st.booleans())
def test_random_nets(graph: Graph, kernel: bool) -> None:
    graph = as_kernel(graph) if kernel else graph
    result = checked(reorder_ops, graph)
    same_bits(graph, result, [hard_values((16, 4), v.type.dtype.numpy, i) for i, v in enumerate(graph.inputs)])
