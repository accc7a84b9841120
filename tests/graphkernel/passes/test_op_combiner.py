from __future__ import annotations

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.decisions import DecisionLog
from graphkernel.ops import Tensor
from kernelgen.tensor.graph import Graph

FLAG = "--enable_parallel_op_combine=true"


def heads(x: Tensor) -> tuple[Tensor, ...]:
    """Eight narrow products of one wide operand."""
    weights = np.random.default_rng(0).standard_normal((8, 512, 8)).astype(np.float32)
    return tuple(ops.tanh(ops.matmul(x, weight)) for weight in weights)


def products_in(graph: Graph) -> int:
    """How many products there are, those in kernels too."""
    parts = (part for node in graph.operators for part in (node.body.operators if node.body is not None else (node,)))
    return sum(part.op.name == "MatMul" for part in parts)


@pytest.mark.parametrize("rows", [16, "N"])
def test_one_product_gives_the_numbers_of_eight(rows: int | str) -> None:
    graph, log = gk.trace(heads, gk.spec((rows, 512))), DecisionLog()
    after = gk.optimize(graph, flags=FLAG, log=log)
    assert products_in(after) == 1
    assert "Concat" not in str(after), "the joined weights are folded"
    assert log.with_code("combined-products")[0].message.startswith("8 products of x, saves")
    x = np.random.default_rng(1).standard_normal((16, 512)).astype(np.float32)
    for got, want in zip(gk.evaluate(after, [x]), gk.evaluate(graph, [x]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_without_the_flag_nothing_is_joined() -> None:
    after = gk.optimize(gk.trace(heads, gk.spec((16, 512))))
    assert products_in(after) == 8


@pytest.mark.parametrize(("transpose_a", "transpose_b"), [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("shared", [0, 1])
def test_either_side_and_every_transpose(shared: int, transpose_a: bool, transpose_b: bool) -> None:
    def net(*operands: Tensor) -> tuple[Tensor, ...]:
        common, *others = operands
        pairs = ((common, other) if shared == 0 else (other, common) for other in others)
        return tuple(ops.batch_matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b) for a, b in pairs)

    transposed = (transpose_a, transpose_b)
    wide = (2, 64, 24) if transposed[shared] == (shared == 0) else (2, 24, 64)
    narrow = (2, 64, 1) if transposed[1 - shared] == (shared == 1) else (2, 1, 64)
    graph = gk.trace(net, gk.spec(wide), gk.spec(narrow), gk.spec(narrow))
    after = gk.optimize(graph, flags=FLAG)
    assert [node.op.name for node in after.operators].count("BatchMatMul") == 1
    arrays = [np.random.default_rng(0).standard_normal(shape).astype(np.float32) for shape in (wide, narrow, narrow)]
    for got, want in zip(gk.evaluate(after, arrays), gk.evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
