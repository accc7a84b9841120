"""The pass quantized_images: a quantized image network is in kernels of ours as a whole, or not at all.

Before and after::

    q = QuantizeLinear(x, s, z)                   ==>    q = Cast(..Round(RealDiv(x, s))..)           as arithmetic
    y = Conv2D(DequantizeLinear(q, s, z),                y = Mul(Cast(Conv2D(q, w)), [s * t])         sums of int32
               DequantizeLinear(w, t))

A library computes on bytes from one convolution to the next, in a layout of its own, and kernels between them would cost two
changes each time. So all that quantizes becomes arithmetic, and convolutions are on bytes, if
:mod:`graphkernel.cluster.convolution_cost` says of all regions that follow that they are faster with channels last.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.cluster.stored_weights import known
from graphkernel.ops import Tensor, apply
from graphkernel.passes.base import Context, graph_pass
from graphkernel.passes.named_fusion.written_quant import along, is_onnx, zero_point
from graphkernel.passes.own_products import is_barred
from graphkernel.passes.precision.byte_convolutions import (
    bordered,
    is_chosen,
    of_groups,
    raised,
    sums_of_bytes,
    taken_off,
)
from graphkernel.passes.precision.quantization import (
    BYTE_HALF,
    BYTES,
    FLOAT,
    INT32,
    UINT8,
    Array,
    cast,
    dequantized,
    quantized,
)
from kernelgen.tensor.graph import Builder, Graph, Node, Value, keep
from kernelgen.tensor.operators.nn import CONV2D


@graph_pass
def quantized_images(graph: Graph, context: Context) -> Graph:
    """QuantizeLinear, DequantizeLinear and the convolutions between them as arithmetic and sums of bytes, by a cost."""
    first = next((node for node in graph.operators if _is_quantized(node)), None)
    if first is None or is_barred(first, context.options):
        return graph
    made = with_unique_labels(graph.rebuild(_Rewriter().rewrite))
    note = partial(context.log.add, quantized_images.name, subject=first.name)
    is_whole = not any(is_onnx(node, "QuantizeLinear") for node in made.operators)
    return made if is_chosen(made, note, "all that is quantized", is_whole) else graph


def _is_quantized(node: Node) -> bool:
    return node.op is CONV2D and all(is_onnx(arg.node, "DequantizeLinear") for arg in node.args)


class Scaled(NamedTuple):
    """Bytes, and what they stand for: ``(bytes - zero) * scale``."""

    bytes: Value
    scale: Array
    zero: Array


@dataclass
class _Rewriter:
    """Makes arithmetic of what quantizes; ``read`` are the results that stand for bytes.

    Convolutions read bytes without a sign: such are made beside those with one, ``unsigned``, and who reads the one reads the
    other, so that one of both is stored.
    """

    read: dict[Value, Scaled] = field(default_factory=dict[Value, Scaled])
    unsigned: dict[Value, Value] = field(default_factory=dict[Value, Value])

    def rewrite(self, node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        """The values that replace the results of a node."""
        kept, builder = keep(node, args), Builder(origin=node.name)
        scales = _scales(node)
        if scales is not None and is_onnx(node, "QuantizeLinear"):
            return (self.quantized(Tensor(args[0], builder), *scales, node.out.type.dtype.name).value,)
        if scales is not None and known(args[0]) is None:
            found = self.scaled(args[0], *scales)
            result = dequantized(Tensor(found.bytes, builder), found.scale, found.zero).value
            self.read[result] = found
            return (result,)
        if _is_quantized(node) and (weights := _weights(kept.args[1].node)) is not None:
            return (self.convolved(kept, weights, builder).value,)
        return kept.outs

    def quantized(self, x: Tensor, scale: Array, zero: Array, of: str) -> Tensor:
        """The bytes nearest to ``x`` by their ``scale`` and ``zero`` point, of a type ``of`` with or without a sign."""
        if of == UINT8:
            return quantized(x, scale, zero, of)
        made = quantized(x, scale, raised(zero), UINT8)
        signed = cast(cast(made, INT32) - np.int32(BYTE_HALF), of)
        self.unsigned[signed.value] = made.value
        return signed

    def scaled(self, numbers: Value, scale: Array, zero: Array) -> Scaled:
        """What bytes stand for, by those without a sign where there are such."""
        unsigned = self.unsigned.get(numbers)
        return Scaled(numbers, scale, zero) if unsigned is None else Scaled(unsigned, scale, raised(zero))

    def convolved(self, node: Node, weights: tuple[Array, Array], builder: Builder) -> Tensor:
        """A convolution on bytes where its image stands for bytes, else on floats."""
        numbers, scales = weights
        image, by_channels = self.read.get(node.args[0]), scales.reshape(-1, 1, 1)
        if image is None:
            floats = numbers.astype(np.float32) * by_channels[..., None]
            return apply(CONV2D, Tensor(node.args[0], builder), floats, **node.attrs)
        bytes_, zero = Tensor(image.bytes, builder), image.zero
        if bytes_.dtype.name == "int8":
            bytes_, zero = cast(cast(bytes_, INT32) + np.int32(BYTE_HALF), UINT8), raised(zero)
        total = sums_of_bytes(*bordered(bytes_, node.attrs, int(zero)), numbers)
        total = taken_off(total, zero, numbers.sum((1, 2, 3), dtype=np.int32))
        return (total if of_groups(node.attrs) else cast(total, FLOAT)) * (by_channels * image.scale)


def _scales(node: Node) -> tuple[Array, Array] | None:
    """Scale and zero point of a node that quantizes to bytes, or reads them, by one constant scale; None for others."""
    if not (is_onnx(node, "QuantizeLinear") or is_onnx(node, "DequantizeLinear")):
        return None
    scale, zero = known(node.args[1]), zero_point(node)
    bytes_ = node.out if is_onnx(node, "QuantizeLinear") else node.args[0]
    if (
        scale is None
        or zero is None
        or scale.size != 1
        or scale.dtype != np.float32
        or bytes_.type.dtype.name not in BYTES
    ):
        return None
    return scale.reshape(()), zero.reshape(())


def _weights(node: Node) -> tuple[Array, Array] | None:
    """Constant weights of int8 without zero points, and their scales, one or one for each result channel."""
    if not is_onnx(node, "DequantizeLinear"):
        return None
    numbers, scales, zeros = known(node.args[0]), known(node.args[1]), zero_point(node)
    if numbers is None or scales is None or zeros is None or numbers.dtype != np.int8 or zeros.any():
        return None
    is_along = scales.size == 1 or along(node, node.args[0]) == 0
    return (numbers, scales.reshape(-1)) if is_along and scales.dtype == np.float32 else None
