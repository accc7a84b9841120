"""The passes written_quantize and written_quant_product: ONNX's quantized operators as those that Ascend has.

Before and after::

    q = QuantizeLinear(x, 0.25, 0)                         ==>    q = QuantV2(x, 4.0, 0)
    y = MatMul(DequantizeLinear(a, 0.5, 0),                ==>    y = QuantBatchMatmul(a, w, [0.5 * s, ..])
               DequantizeLinear(w, s, 0, axis=1))

QuantV2 multiplies where QuantizeLinear divides, and adds the offset before it rounds: the integers are the same where the scale
is a power of two and the zero point 0; exact_precision_mode=false takes others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphkernel.expanders.base import Declined
from graphkernel.ops import Tensor, apply_all
from graphkernel.ops.fused.fused_quant import QUANT_BATCH_MATMUL, QUANT_V2
from graphkernel.ops.library import host
from graphkernel.passes.named_fusion.apply_fusion import Fusion, Product, Site, named_fusion
from graphkernel.passes.named_fusion.queries import first_failure
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operators.matmul import BATCH_MATMUL, MATMUL

Array = np.ndarray[Any, np.dtype[Any]]
MOST_TERMS = 2**31 // 2**14  # products of int8 whose sum fits int32
INT8 = "int8"


@named_fusion("written_quantize")
def written_quantize(site: Site) -> Fusion | Declined | None:
    """QuantizeLinear to int8 as QuantV2."""
    root = site.root
    if not is_onnx(root, "QuantizeLinear"):
        return None
    x, scale = root.args[0], root.args[1].constant
    zero = zero_point(root)
    exact = site.options.exact_precision_mode
    declined = first_failure(
        (
            (root.out.type.dtype.name == INT8, f"the result is {root.out.type.dtype}, expected int8"),
            (scale is not None and zero is not None, "scale or zero point are not constants"),
            (along(root, x) in (None, x.type.rank - 1), "the scales are not along the last axis"),
        )
    )
    if declined or scale is None or zero is None:
        return declined or Declined("scale or zero point are not constants")
    if exact and (zero.any() or (np.frexp(scale.astype(np.float64))[0] != 0.5).any()):
        return Declined("a scale is no power of two or a zero point is not 0; exact_precision_mode=false takes them")
    return Fusion((root,), (x,), root.outs, _quantized(1 / scale.astype(np.float32), zero))


@named_fusion("written_quant_product")
def written_quant_product(site: Site) -> Fusion | Declined | None:
    """A product of two dequantized tensors, scaled as wholes or the second by columns, as QuantBatchMatmul."""
    root = site.root
    first, second = (arg.node for arg in root.args[:2]) if root.op in (MATMUL, BATCH_MATMUL) else (root, root)
    if len(root.args) != 2 or not all(is_onnx(node, "DequantizeLinear") for node in (first, second)):
        return None
    declined = _unfit(root, first, second)
    scales = [node.args[1].constant for node in (first, second)]
    zeros = [zero_point(node) for node in (first, second)]
    known = [array for array in (*scales, *zeros) if array is not None]
    if declined or len(known) < len(scales) + len(zeros):
        return declined or Declined("a scale or zero point is no constant")
    if any(zero.any() for zero in known[2:]):
        return Declined("a zero point is not 0")
    scale = (known[0].astype(np.float32) * known[1].astype(np.float32)).reshape(-1)
    return Fusion((root,), (first.args[0], second.args[0]), root.outs, _product(root, scale))


def _unfit(root: Node, first: Node, second: Node) -> Declined | None:
    """What of the types, axes and sizes QuantBatchMatmul does not take."""
    x, weight = first.args[0], second.args[0]
    columns = weight.type.rank - (2 if root.attrs.bool("transpose_b", False) else 1)
    terms = x.type.shape[-2 if root.attrs.bool("transpose_a", False) else -1]
    return first_failure(
        (
            (x.type.dtype.name == weight.type.dtype.name == INT8, f"factors of {x.type.dtype} and {weight.type.dtype}"),
            (along(first, x) is None, "x has several scales"),
            (along(second, weight) in (None, columns), "the scales are not along the columns"),
            (isinstance(terms, int) and terms < MOST_TERMS, f"sums of {terms} products may not fit int32"),
        )
    )


def is_onnx(node: Node, name: str) -> bool:
    """True for ONNX's operator of that name, in forms without blocks."""
    is_plain = host.is_onnx(node, name) and not node.attrs.str("domain", "")
    return is_plain and not host.attribute_values(node).get("block_size", 0)


def given_operands(node: Node) -> tuple[Value | None, ...]:
    """The operands of an ONNX node, None for those that are left out."""
    given = iter(node.args)
    return tuple(next(given) if there else None for there in node.attrs.ints("present", (1,) * len(node.args)))


def zero_point(node: Node) -> Array | None:
    """The zero points; one of 0 where there are none, None where they are not constants."""
    return node.args[2].constant if len(node.args) > 2 else np.zeros((), np.int8)


def along(node: Node, x: Value) -> int | None:
    """The axis along which there are several scales."""
    return host.attribute_values(node).get("axis", 1) % x.type.rank if node.args[1].type.rank else None


def _quantized(factor: Array, zero: Array) -> Product:
    def build(x: Tensor) -> tuple[Tensor, ...]:
        operands = (Tensor(x.builder.constant(array), x.builder) for array in (factor, zero))
        return apply_all(QUANT_V2, x, *operands, sqrt_mode=False, rounding_mode="ROUND")

    return build


def _product(matmul: Node, scale: Array) -> Product:
    transposes = {f"transpose_x{i}": matmul.attrs.bool(f"transpose_{side}", False) for i, side in ((1, "a"), (2, "b"))}
    dtype = matmul.out.type.dtype.name

    def build(x: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
        factor = Tensor(x.builder.constant(scale), x.builder)
        return apply_all(QUANT_BATCH_MATMUL, x, weight, factor, dtype=dtype, optional=(), **transposes)

    return build
