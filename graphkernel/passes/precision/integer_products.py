"""The pass integer_products: products of quantized rows with constants are kernels of ours, with what quantizes beside them.

Before and after::

    q, s, z = DynamicQuantizeLinear(x)            ==>   q, s, z = ..ReduceMax(x)..Round(RealDiv(x, s))..    as arithmetic
    y = MatMulInteger(q, w, z)                          y = Sub(MatMulInteger(q, w, own_kernel=True), Mul(z, [sums of columns]))

    y = MatMul(DequantizeLinear(q, s, z),         ==>   y = Mul(Cast(Sub(MatMulInteger(q, w), [z * sums])), [s * t])
               DequantizeLinear(w, t))

Sums of products of bytes, one with a sign and one without, are exact in int32, and processors add four at a time. Zero points
are taken off the sums: that of the rows times the sums of the weights' columns, which are constants.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.cluster.product_cost import WORD_BYTES, cost_of
from graphkernel.cluster.stored_weights import known
from graphkernel.ops import Tensor, apply
from graphkernel.passes.base import Context, graph_pass
from graphkernel.passes.named_fusion.written_quant import along, given_operands, is_onnx
from graphkernel.passes.own_products import LEAST_WEIGHTS, is_barred
from graphkernel.passes.precision.quantization import (
    BYTE_HALF,
    BYTES,
    INT32,
    UINT8,
    Array,
    cast,
    dynamically_quantized,
    quantized,
    with_sign,
)
from kernelgen.tensor.dims import product
from kernelgen.tensor.graph import Builder, Graph, Node, Value, keep
from kernelgen.tensor.operators.matmul import BATCH_MATMUL, MATMUL, MATMUL_INTEGER
from kernelgen.tensor.operators.reduce import REDUCE_SUM
from kernelgen.tensor.types import dtype

FLOAT, INT8 = dtype("float32"), dtype("int8")
FACTORS = 2


class Weights(NamedTuple):
    """Integers ``[terms, columns]`` of int8, and their zero points in int32, one or one for each column."""

    numbers: Array
    zeros: Array

    @property
    def offsets(self) -> Array:
        """What a zero point of the rows is multiplied with: the sums of the columns, zero points taken off."""
        return self.numbers.sum(0, dtype=np.int32) - np.int32(len(self.numbers)) * self.zeros


class IntegerProduct(NamedTuple):
    """Rows of bytes, their zero point, weights, and the scale of the sums; None where they stay int32."""

    rows: Value
    zero: Value | Array
    weights: Weights
    scale: Array | None = None


@graph_pass
def integer_products(graph: Graph, context: Context) -> Graph:
    """MatMulInteger with constant weights, and products of dequantized tensors, as kernels of ours by a cost."""
    chosen = {node: found for node in graph.operators if (found := _chosen(node, context))}
    quantizers = {found.rows.node for found in chosen.values()}

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        kept, builder = keep(node, args), Builder(origin=node.name)
        found = _product(kept) if node in chosen else None
        if found is not None:
            return (_computed(found, builder).value,)
        results = _quantizer(kept, builder) if node in quantizers else ()
        return tuple(each.value for each in results) or kept.outs

    result = graph.rebuild(rewrite) if chosen else graph
    return result if result is graph else with_unique_labels(result)


def _chosen(node: Node, context: Context) -> IntegerProduct | None:
    """The product that a node is, where a kernel of ours takes no longer."""
    found = None if is_barred(node, context.options) else _product(node)
    if found is None:
        return None
    terms, columns = found.weights.numbers.shape
    rows = product(node.out.type.shape[:-1])
    cost = cost_of(rows, -(-terms // WORD_BYTES), columns)
    message = f"{rows} rows, {columns} columns, {terms * columns} bytes of weights; {cost}"
    reason = "own-product" if cost.is_own else "not-own-product"
    context.log.add(integer_products.name, reason, node.name, message=message)
    return found if cost.is_own else None


def _product(node: Node) -> IntegerProduct | None:
    """The product of bytes with constant weights that a node is; None for other nodes."""
    if is_onnx(node, MATMUL_INTEGER.name):
        return _of_integers(node)
    is_product = node.op in (MATMUL, BATCH_MATMUL) and len(node.args) == FACTORS
    return _of_dequantized(node) if is_product and not node.attrs.bool("transpose_a", False) else None


def _of_integers(node: Node) -> IntegerProduct | None:
    rows, numbers, zero, zeros = (*given_operands(node), None, None)[:4]
    weights = None if numbers is None else _weights(numbers, zeros)
    if rows is None or weights is None or not _are_rows(rows) or (zero is not None and zero.type.size != 1):
        return None
    return IntegerProduct(rows, np.zeros((), np.int32) if zero is None else zero, weights)


def _of_dequantized(node: Node) -> IntegerProduct | None:
    rows, weights = (arg.node for arg in node.args)
    if not all(is_onnx(each, "DequantizeLinear") and each.out.type.dtype == FLOAT for each in (rows, weights)):
        return None
    turned = node.attrs.bool("transpose_b", False)
    found = _weights(weights.args[0], (*weights.args[2:], None)[0], turned)
    of_rows, of_weights, zero = known(rows.args[1]), known(weights.args[1]), (*rows.args[2:], None)[0]
    if found is None or of_rows is None or of_weights is None or not _are_rows(rows.args[0]) or of_rows.size != 1:
        return None
    if of_weights.size != 1 and (along(weights, weights.args[0]) != (0 if turned else 1) or of_weights.ndim != 1):
        return None
    scale = (of_rows.reshape(()) * of_weights.reshape(-1)).astype(np.float32)
    return IntegerProduct(rows.args[0], np.zeros((), np.int32) if zero is None else zero, found, scale)


def _are_rows(rows: Value) -> bool:
    return rows.type.dtype.name in BYTES and rows.type.rank > 1


def _weights(numbers: Value, zeros: Value | None, turned: bool = False) -> Weights | None:
    """Constant weights as int8: those without a sign less 128; None where they are no constant matrix worth packing.

    ``turned`` ones are columns by terms.
    """
    given = known(numbers)
    offsets = np.zeros(1, np.int32) if zeros is None else known(zeros)
    if given is None or given.dtype.name not in BYTES or given.ndim != 2 or offsets is None:
        return None
    given = np.ascontiguousarray(given.T) if turned else given
    if given.size < LEAST_WEIGHTS or min(given.shape) == 1 or offsets.size not in (1, given.shape[1]):
        return None
    return Weights(*with_sign(given, offsets))


def _computed(found: IntegerProduct, builder: Builder) -> Tensor:
    """The sums, zero points taken off, times the scale."""
    weights = found.weights
    rows = Tensor(found.rows, builder)
    zero = cast(Tensor(found.zero, builder) if isinstance(found.zero, Value) else found.zero, INT32)
    if rows.dtype == INT8:
        rows, zero = cast(cast(rows, INT32) + np.int32(BYTE_HALF), UINT8), zero + np.int32(BYTE_HALF)
    total = apply(MATMUL_INTEGER, rows, weights.numbers, own_kernel=True) - zero * weights.offsets
    if weights.zeros.any():
        sums = apply(REDUCE_SUM, cast(rows, INT32), axis=(-1,), keep_dims=True)
        total = total - sums * weights.zeros
    return total if found.scale is None else cast(total, "float32") * found.scale


def _quantizer(node: Node, builder: Builder) -> tuple[Tensor, ...]:
    """The results of a quantizer of float32 by one scale; nothing for other nodes."""
    x = node.args[0] if node.args else None
    if x is None or x.type.dtype != FLOAT:
        return ()
    if is_onnx(node, "DynamicQuantizeLinear"):
        return dynamically_quantized(Tensor(x, builder), x.type.rank)
    of = node.out.type.dtype.name
    if not is_onnx(node, "QuantizeLinear") or of not in BYTES or node.args[1].type.size != 1:
        return ()
    scale, *zeros = (Tensor(arg, builder) for arg in node.args[1:])
    return (quantized(Tensor(x, builder), scale, zeros[0] if zeros else np.zeros((), of), of),)
