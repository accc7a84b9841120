"""Gradients' products read a factor that was turned round once, and give the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.ops import Tensor
from kernelgen.tensor.operators.matmul import MATMUL
from kernelgen.tensor.operators.shape import TRANSPOSE


def gradients(x: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor, ...]:
    return ops.matmul(x, y, transpose_a=True), ops.matmul(x, z, transpose_a=True)


def optimized(columns: int) -> gk.Graph:
    return gk.optimize(gk.trace(gradients, gk.spec((128, 160)), gk.spec((128, columns)), gk.spec((128, columns))))


def operators(graph: gk.Graph) -> list[str]:
    return [inner.op.name for node in graph.operators for inner in (node.body.operators if node.body else (node,))]


@pytest.mark.parametrize(("columns", "turned"), [(256, 1), (128, 0)])
def test_one_transposition_serves_all_products_where_panels_are_many(columns: int, turned: int) -> None:
    graph = optimized(columns)
    assert operators(graph).count(TRANSPOSE.name) == turned
    assert operators(graph).count(MATMUL.name) == 2
    random = np.random.default_rng(2)
    x, y, z = (random.standard_normal((128, n)).astype(np.float32) for n in (160, columns, columns))
    for got, right in zip(gk.compile(graph)(x, y, z), (y, z), strict=True):
        np.testing.assert_allclose(got, x.astype(np.float64).T @ right, rtol=1e-4, atol=1e-4)


def test_open_sizes_and_batches_stay() -> None:
    for shape in (("N", 160), (4, 128, 160)):
        specs = [gk.spec(shape), gk.spec((*shape[:-1], 512))]
        graph = gk.optimize(gk.trace(lambda x, y: ops.matmul(x, y, transpose_a=True), *specs))
        assert TRANSPOSE.name not in operators(graph)
