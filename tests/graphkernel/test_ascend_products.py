"""What joins a product, a reshape or a slice in one kernel on Ascend at default flags, and what flags take apart again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.ops.tensor.tensor import Tensor
from kernelgen.tensor.graph import Graph

X, W, Y = ("M", 64), (64, 96), ("M", 96)
HEADS, KEYS, MASK = (2, 4, 16, 32), (2, 4, 16, 32), (2, 1, 1, 16)


def scores(query: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
    return ops.softmax(ops.add(ops.mul(ops.matmul(query, ops.transpose(keys, (0, 1, 3, 2))), 0.125), mask))


def normed(x: Tensor, w: Tensor, residual: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    return ops.layer_norm(ops.add(ops.matmul(x, w), residual), scale, shift)


NETS: dict[str, tuple[Callable[..., Any], Sequence[tuple[int | str, ...]]]] = {
    "exp": (lambda x, w: ops.exp(ops.matmul(x, w)), ((128, 64), W)),
    "rows that are not known": (lambda x, w: ops.exp(ops.matmul(x, w)), (X, W)),
    "bias and gelu": (lambda x, w, b: ops.gelu(ops.add(ops.matmul(x, w), b)), ((48, 64), W, (96,))),
    "residual": (lambda x, w, r: ops.add(ops.matmul(x, w), r), ((48, 64), W, (48, 96))),
    "scores": (scores, (HEADS, KEYS, MASK)),
    "softmax of rows that are not known": (lambda x, w: ops.softmax(ops.matmul(x, w)), (X, W)),
    "norm": (normed, ((48, 64), W, (48, 96), (96,), (96,))),
    "reshape": (lambda x: ops.exp(ops.reshape(ops.log(x), (32, 32))), ((16, 64),)),
    "slice": (lambda x: ops.exp(ops.strided_slice(x, (1, 2), (15, 60), (2, 3))), ((16, 64),)),
    "AddN": (lambda x, y, z: ops.exp(ops.add_n(x, y, z)), ((16, 64),) * 3),
}


def traced(name: str) -> Graph:
    function, shapes = NETS[name]
    return gk.trace(lambda *operands: function(*operands), *[gk.spec(shape, "float16") for shape in shapes])


@pytest.mark.parametrize("name", NETS)
def test_one_kernel_that_is_right(name: str) -> None:
    graph = traced(name)
    executable = gk.compile(graph, target="ascend", opt_level=2)
    assert len(executable.report.kernels) == 1
    assert executable.report.fallbacks == ()
    random = np.random.default_rng(0)
    arrays = [
        random.uniform(0.1, 0.9, [_size(dim) for dim in value.type.shape]).astype("float16") for value in graph.inputs
    ]
    got, *_ = executable(*arrays)
    want, *_ = gk.evaluate(graph, arrays)
    np.testing.assert_allclose(got, want, rtol=4e-3, atol=4e-3)


def _size(dim: object) -> int:
    return dim if isinstance(dim, int) else 37


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("exp", "--disable_cluster_ops=MatMul"),
        ("exp", "--enable_cluster_ops_only=Exp"),
        ("exp", "--disable_matmul_post_fusion"),
        ("exp", "--disable_fusion_pattern=matmul_depth"),
        ("scores", "--disable_cluster_ops=BatchMatMul"),
        ("scores", "--disable_matmul_post_fusion"),
        ("scores", "--disable_fusion_pattern=matmul_rows"),
        ("reshape", "--disable_cluster_ops=Reshape"),
        ("slice", "--disable_cluster_ops=StridedSlice"),
        ("slice", "--disable_fusion_pattern=slice,stencil"),
    ],
)
def test_flags_take_it_apart(name: str, flags: str) -> None:
    assert len(gk.optimize(traced(name), target="ascend", flags=flags).operators) > 1


def test_a_product_alone_is_left_to_the_library() -> None:
    graph = gk.trace(lambda x, w: ops.matmul(x, w), gk.spec((64, 64), "float16"), gk.spec((64, 64), "float16"))
    (node,) = gk.optimize(graph, target="ascend").operators
    assert node.op.name == "MatMul"


def test_rows_across_a_product_are_no_whole_rows() -> None:
    """Sums down the columns of a product have no rows to work on; the product stays with the library."""
    shapes = ((64, 64), (64, 96))
    graph = gk.trace(
        lambda x, w: ops.reduce_sum(ops.matmul(x, w), axis=(0,)), *[gk.spec(one, "float16") for one in shapes]
    )
    assert gk.optimize(graph, target="ascend").operators[0].op.name == "MatMul"


def test_rows_of_another_rank_than_the_products_are_not_its_rows() -> None:
    """As in GPT-2, whose products are matrices and whose norms have three axes."""

    def net(x: Tensor, w: Tensor) -> Tensor:
        y = ops.reshape(ops.matmul(x, w), (2, 300, 512))
        return ops.reduce_sum(ops.exp(y), 2, keep_dims=True)

    graph = gk.trace(net, gk.spec((600, 512), "float16"), gk.spec((512, 512), "float16"))
    kernels = [node for node in gk.optimize(graph, target="ascend").operators if node.body is not None]
    assert kernels


def test_a_slice_that_is_transposed_behind_a_reshape_moves_in_rows() -> None:
    """In one kernel its elements would be picked one by one: the heads of attention's joint product."""
    graph = gk.trace(
        lambda x: ops.transpose(
            ops.reshape(ops.strided_slice(x, (0, 32), (16, 64), (1, 1)), (2, 8, 4, 8)), (0, 2, 1, 3)
        ),
        gk.spec((16, 96), "float16"),
    )
    assert len(gk.optimize(graph, target="ascend").operators) == 2
