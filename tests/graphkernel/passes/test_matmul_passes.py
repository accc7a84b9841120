"""Transposes around products, and what is decided about their padding."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from pass_runs import as_kernel, checked, same_bits

import graphkernel as gk
from graphkernel import ops
from graphkernel.decisions import DecisionLog
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops import Tensor
from graphkernel.passes.base import Context
from graphkernel.passes.insert_pad_ops import insert_pad_ops
from graphkernel.passes.precision.cast_matmul_fusion import cast_matmul_fusion
from graphkernel.passes.transpose_matmul_fusion import transpose_matmul_fusion
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Graph

Shape = tuple[int | str, ...]


def integers(graph: Graph, rows: int = 2) -> list[np.ndarray[Any, Any]]:
    """Small integers, whose products are exact in every order of summation."""
    generator = np.random.default_rng(0)
    shapes = [tuple(dim if isinstance(dim, int) else rows for dim in value.type.shape) for value in graph.inputs]
    return [
        generator.integers(-3, 4, shape).astype(value.type.dtype.numpy)
        for shape, value in zip(shapes, graph.inputs, strict=True)
    ]


def names(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.operators]


@pytest.mark.parametrize(("batch", "moved"), [*product([(), (2,), ("B", 3)], product([False, True], repeat=4))])
def test_every_combination_of_flags_and_transposes(batch: Shape, moved: tuple[bool, ...]) -> None:
    flag_a, flag_b, swap_a, swap_b = moved

    def net(a: Tensor, b: Tensor) -> Tensor:
        last = (*range(len(batch)), len(batch) + 1, len(batch))
        x = ops.transpose(a, last) if swap_a else a
        y = ops.transpose(b, last) if swap_b else b
        return ops.matmul(x, y, transpose_a=flag_a, transpose_b=flag_b)

    left, right = ((4, 5) if flag_a == swap_a else (5, 4)), ((5, 6) if flag_b == swap_b else (6, 5))
    graph = trace(net, spec((*batch, *left)), spec((*batch, *right)))
    result = checked(transpose_matmul_fusion, graph)
    assert "Transpose" not in names(result)
    same_bits(graph, result, integers(graph))


def test_a_transpose_that_is_needed_otherwise_stays_for_the_others() -> None:
    def net(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        moved = ops.transpose(b, (1, 0))
        return ops.matmul(a, moved), ops.exp(moved)

    graph = trace(net, spec((3, 4)), spec((5, 4)))
    result = checked(transpose_matmul_fusion, graph)
    assert sorted(names(result)) == ["Exp", "MatMul", "Transpose"]
    same_bits(graph, result, integers(graph))


@pytest.mark.parametrize("perm", [(2, 1, 0), (1, 0, 2), (1, 2, 0)])
def test_other_permutations_stay(perm: tuple[int, ...]) -> None:
    graph = trace(lambda a, b: ops.matmul(ops.transpose(a, perm), b), spec((4, 4, 4)), spec((4, 4, 4)))
    assert checked(transpose_matmul_fusion, graph) is graph


def test_products_in_kernels() -> None:
    graph = as_kernel(trace(lambda a, b: ops.matmul(a, ops.transpose(b, (1, 0))), spec((3, 4)), spec((5, 4))))
    result = checked(transpose_matmul_fusion, graph)
    assert "Transpose" not in str(result)
    same_bits(graph, result, integers(graph))


@pytest.mark.parametrize(("batch", "flags"), [*product([(), (2,), ("B",)], product([False, True], repeat=2))])
@pytest.mark.parametrize(
    ("extents", "filled"),
    [((32, 64, 16), None), ((1, 1, 1), (32, 32, 16)), ((33, 31, 17), (64, 32, 32)), ((100, 32, 40), (128, 32, 48))],
)
def test_padding_is_the_kernels_and_moves_nothing(
    batch: Shape, flags: tuple[bool, bool], extents: tuple[int, int, int], filled: tuple[int, int, int] | None
) -> None:
    def net(a: Tensor, b: Tensor) -> Tensor:
        return ops.matmul(a, b, transpose_a=flags[0], transpose_b=flags[1])

    m, n, k = extents
    left, right = ((k, m) if flags[0] else (m, k)), ((n, k) if flags[1] else (k, n))
    graph = as_kernel(trace(net, spec((*batch, *left), "float16"), spec((*batch, *right), "float16")))
    log = DecisionLog()
    insert_pad_ops(graph, Context(log=log))
    result = checked(insert_pad_ops, graph)
    (kernel,) = result.operators
    assert kernel.body is not None
    (found,) = kernel.body.operators
    assert found.attrs["Akg"] is True
    assert [arg.type for arg in found.args] == [value.type for value in graph.inputs]
    told = [(decision.code, decision.message) for decision in log]
    before = "M, N, K = " + ", ".join(map(str, extents))
    after = "" if filled is None else " are filled up to " + ", ".join(map(str, filled))
    assert told == [("padded", f"{before}{after} in shared memory, without a copy" if filled else "")]
    same_bits(graph, result, integers(graph))


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        ((32, 4112), (4112, 32), "K = 4112 is above 4096"),
        ((4096, 2048), (2048, 4096), "M * N * K = 34359738368 is not below 3e+10"),
        (("M", 16), (16, 32), "M, N, K = M, 32, 16 are not all static"),
    ],
)
def test_products_left_to_a_library(a: Shape, b: Shape, why: str) -> None:
    log = DecisionLog()
    graph = as_kernel(trace(ops.matmul, spec(a, "float16"), spec(b, "float16")))
    result = insert_pad_ops(graph, Context(log=log))
    assert "Akg=False" in str(result)
    assert "PadAkg" not in str(result)
    assert [(decision.code, decision.message) for decision in log] == [("not-padded", why)]
    assert checked(insert_pad_ops, result) is result


def test_single_precision_and_products_outside_kernels_stay() -> None:
    for graph in (
        as_kernel(trace(ops.matmul, spec((3, 3)), spec((3, 3)))),
        trace(ops.matmul, *[spec((3, 3), "float16")] * 2),
    ):
        assert checked(insert_pad_ops, graph) is graph


def linear(a: Tensor, b: Tensor, bias: Tensor) -> Tensor:
    return ops.apply(ops.OPS["MatMul"], a, b, ops.cast(bias, "float16"))


@pytest.mark.parametrize("kernel", [False, True])
def test_a_product_takes_a_bias_in_single_precision(kernel: bool) -> None:
    graph = trace(linear, spec(("N", 5), "float16"), spec((5, 7), "float16"), spec((7,)))
    graph = as_kernel(graph) if kernel else graph
    result = checked(cast_matmul_fusion, graph)
    assert "Cast" not in str(result)
    same_bits(graph, result, integers(graph))


def test_such_a_bias_is_not_rounded() -> None:
    graph = trace(linear, spec((1, 1), "float16"), spec((1, 1), "float16"), spec((1,)))
    result = checked(cast_matmul_fusion, graph)
    arrays = [np.asarray([[1.0]], np.float16), np.asarray([[-2048.0]], np.float16), np.asarray([2049.0], np.float32)]
    assert [float(evaluate(g, arrays)[0][0, 0]) for g in (graph, result)] == [0.0, 1.0]


def test_a_cast_with_other_users_or_from_other_types_stays() -> None:
    def shared(a: Tensor, b: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        narrow = ops.cast(bias, "float16")
        return ops.apply(ops.OPS["MatMul"], a, b, narrow), narrow

    operands = (spec((2, 5), "float16"), spec((5, 7), "float16"))
    for graph in (trace(shared, *operands, spec((7,))), trace(linear, *operands, spec((7,), "int32"))):
        assert checked(cast_matmul_fusion, graph) is graph


def test_onnxruntime_takes_such_a_bias() -> None:
    graph = trace(linear, spec((2, 5), "float16"), spec((5, 7), "float16"), spec((7,)))
    result = checked(cast_matmul_fusion, graph)
    arrays = integers(graph)
    np.testing.assert_array_equal(gk.compile(result, opt_level=0)(*arrays)[0], evaluate(graph, arrays)[0])
