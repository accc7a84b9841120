"""Fewer transforms, same bits: on nets where the best number is known and on random ones."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pass_runs import as_kernel, checked, same_bits

from graphkernel import ops
from graphkernel.decisions import DecisionLog
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops import Tensor
from graphkernel.passes.base import Context
from graphkernel.passes.format.transform_op_optimizer import transform_op_optimizer
from kernelgen.tensor.dims import static_extents
from kernelgen.tensor.graph import Builder, Graph
from kernelgen.tensor.types import TensorType, dtype, sym


def count(graph: Graph, name: str = "Transpose") -> int:
    return sum(node.op.name == name for node in graph.operators) + sum(
        count(node.body, name) for node in graph.operators if node.body is not None
    )


def there(x: Tensor) -> Tensor:
    return ops.transpose(x, (0, 2, 3, 1))


def back(x: Tensor) -> Tensor:
    return ops.transpose(x, (0, 3, 1, 2))


def chain(x: Tensor) -> Tensor:
    for _ in range(5):
        x = back(ops.exp(there(ops.tanh(x))))
    return x


def fan_out(x: Tensor) -> tuple[Tensor, ...]:
    y = ops.exp(x)
    return tuple(there(op(y)) for op in (ops.neg, ops.abs, ops.tanh))


def fan_in(x: Tensor) -> Tensor:
    return there(x) + there(ops.exp(x)) * there(ops.neg(x))


def twice(x: Tensor) -> tuple[Tensor, Tensor]:
    return there(x), ops.exp(there(x))


def three_formats(x: Tensor) -> Tensor:
    y = ops.exp(ops.transpose(x, (1, 0, 2, 3)))
    z = ops.neg(ops.transpose(y, (1, 0, 3, 2)))
    return ops.tanh(ops.transpose(z, (0, 1, 3, 2)))


def heads(x: Tensor) -> Tensor:
    return ops.reduce_max(there(ops.exp(x)), axis=1)


@pytest.mark.parametrize(
    ("net", "before", "after"),
    [(chain, 10, 0), (fan_out, 3, 1), (fan_in, 3, 1), (twice, 2, 1), (three_formats, 3, 0), (heads, 1, 1)],
)
@pytest.mark.parametrize("kernel", [False, True])
@pytest.mark.parametrize("first", [2, "B"])
def test_the_number_of_transposes(net: Any, before: int, after: int, kernel: bool, first: int | str) -> None:
    graph = trace(net, spec((first, 3, 4, 5)))
    graph = as_kernel(graph) if kernel else graph
    assert count(graph) == before
    result = checked(transform_op_optimizer, graph)
    assert count(result) == after
    same_bits(graph, result, [np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)])


def test_a_user_outside_the_region_gets_the_format_that_it_had() -> None:
    def net(x: Tensor) -> tuple[Tensor, Tensor]:
        y = ops.exp(there(x))
        return back(ops.neg(y)), ops.reduce_sum(y, axis=3)

    graph = trace(net, spec((2, 3, 4, 5)))
    result = checked(transform_op_optimizer, graph)
    assert count(result) == 1
    same_bits(graph, result, [np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)])


def test_the_decision_is_recorded() -> None:
    log = DecisionLog()
    transform_op_optimizer(trace(chain, spec((2, 3, 4, 5))), Context(log=log))
    assert [decision.message for decision in log] == ["10 Transpose became 0"]


def test_operators_that_look_at_axes_or_broadcast_to_more_axes_do_not_move() -> None:
    def net(x: Tensor, bias: Tensor) -> Tensor:
        return back(there(x) + bias)

    graph = trace(net, spec((2, 3, 4, 5)), spec((3,)))
    assert checked(transform_op_optimizer, graph) is graph


EXTENTS = (2, 3, 4)
SHAPES = tuple(dict.fromkeys((*permutations(EXTENTS), (6, 4), (4, 6), (24,), (2, 12))))


@st.composite
def nets(draw: st.DrawFn) -> Graph:
    """Moves and element-wise operators over 24 elements; in half of the nets the extent 2 is a symbol."""
    symbol = sym("N") if draw(st.booleans()) else 2
    shapes = [tuple(symbol * 12 if d == 24 else symbol * (d // 2) if d in (6, 12, 2) else d for d in s) for s in SHAPES]
    builder = Builder()
    first = shapes[draw(st.integers(0, 5))]
    inputs = [builder.parameter(f"x{i}", TensorType(first, dtype("float32"))) for i in range(2)]
    inputs.append(builder.parameter("s", TensorType((1, *first[1:]), dtype("float32"))))
    values = [Tensor(value, builder) for value in inputs]
    for _ in range(draw(st.integers(2, 14))):
        x = draw(st.sampled_from(values))
        kind = draw(st.integers(0, 4))
        if kind == 0:
            values.append(draw(st.sampled_from((ops.neg, ops.abs, lambda v: v * 2.0)))(x))
        elif kind == 1:
            values.append(ops.transpose(x, draw(st.permutations(range(x.ndim)))))
        elif kind == 2:
            values.append(ops.reshape(x, draw(st.sampled_from([s for s in shapes if _size(s) == x.size] or [x.shape]))))
        else:
            y = draw(st.sampled_from([v for v in values if _fits(x, v)]))
            values.append(draw(st.sampled_from((ops.add, ops.maximum)))(x, y))
    outputs = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
    return Graph("random", tuple(inputs), tuple(x.value for x in outputs))


def _size(shape: tuple[Any, ...]) -> Any:
    return TensorType(shape, dtype("float32")).size


def _fits(x: Tensor, y: Tensor) -> bool:
    return x.ndim == y.ndim and all(a == b or 1 in (a, b) for a, b in zip(x.shape, y.shape, strict=True))


@given(graph=nets(), kernel=st.booleans())
def test_random_nets(graph: Graph, kernel: bool) -> None:
    graph = as_kernel(graph) if kernel else graph
    result = checked(transform_op_optimizer, graph)
    shapes = [static_extents(value.type.shape) or _bound(value.type.shape) for value in graph.inputs]
    generator = np.random.default_rng(0)
    same_bits(graph, result, [generator.standard_normal(shape).astype(np.float32) for shape in shapes])
    fewer, as_many = count(result) < count(graph), count(result) == count(graph)
    assert fewer or (as_many and count(result, "Reshape") <= count(graph, "Reshape"))


def _bound(shape: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(dim if isinstance(dim, int) else 2 for dim in shape)
