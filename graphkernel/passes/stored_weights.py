"""The pass stored_weights: products keep weights as narrow as the model has them, where they are kernels of ours.

Before and after::

    y = MatMul(x, DequantizeLinear(w: i8[768, 3072], scale, zero))   ==>   y = StoredMatMul(x, w, scale, zero)
    y = MatMul(x: f32[1, 768], w)                                    ==>   y = StoredMatMul(x, w as bf16)

A product of few rows takes as long as its weights take to be read. They are packed as they are, and become numbers in
registers, or in a panel where many rows read them. Weights that were saved as float32 and are numbers of 16 bits are stored
as such where rows are few. Where rows are quantized too a library computes on integers.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphkernel.cluster.product_cost import is_bound_by_memory
from graphkernel.cluster.stored_weights import Stored, blocks_of_bits, dequantized, halves
from graphkernel.ops.library.host import ONNX, is_onnx
from graphkernel.options import Options
from graphkernel.passes.base import Context, graph_pass
from graphkernel.passes.own_products import is_barred, is_with_constant
from kernelgen.tensor.dims import product
from kernelgen.tensor.graph import Builder, Graph, Node, Value
from kernelgen.tensor.operators.matmul import BATCH_MATMUL, MATMUL, STORED_MATMUL
from kernelgen.tensor.types import dtype

FLOAT = dtype("float32")


@graph_pass
def stored_weights(graph: Graph, context: Context) -> Graph:
    """Float32 products with weights that are dequantized, or fit 16 bits, as products with what is stored."""

    stored = {node: found for node in graph.operators if (found := _stored(node, context.options)) is not None}

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        found = stored[node]
        size = sum(each.nbytes for each in found.operands)
        message = f"{found.numbers.size} weights stay {size} bytes"
        context.log.add(stored_weights.name, "own-product", node.name, message=message)
        return (_product_of(args[0], found, Builder(origin=node.name)),)

    return graph.rebuild(rewrite, stored)


def _product_of(x: Value, weights: Stored, builder: Builder) -> Value:
    """The product of rows with stored weights, as a kernel of ours."""
    operands: Sequence[Value] = [builder.constant(each) for each in weights.operands]
    return builder.emit(STORED_MATMUL, x, *operands, bits=weights.bits, own_kernel=True)


def _stored(node: Node, options: Options) -> Stored | None:
    """The weights of a product that it is worth to store; None for others."""
    if node.op not in (MATMUL, BATCH_MATMUL, ONNX) or not node.args or is_barred(node, options):
        return None
    if node.args[0].type.dtype != FLOAT or node.args[0].type.rank < 2 or is_onnx(node.args[0].node, "DequantizeLinear"):
        return None
    if node.op not in (MATMUL, BATCH_MATMUL):
        return blocks_of_bits(node)
    if len(node.args) != 2 or node.attrs.bool("transpose_a", False):
        return None
    turned = node.attrs.bool("transpose_b", False)
    return dequantized(node.args[1], turned) or _of_floats(node, turned)


def _of_floats(node: Node, turned: bool) -> Stored | None:
    if not is_with_constant(node) or not is_bound_by_memory(product(node.out.type.shape[:-1])):
        return None
    weights = node.args[1].constant
    assert weights is not None, "it is a product with a constant"
    return halves(weights.T if turned else weights)
