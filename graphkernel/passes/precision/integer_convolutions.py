"""The pass integer_convolutions: convolutions of images quantized at run time are kernels of ours, with what quantizes them.

Before and after::

    q, s, z = DynamicQuantizeLinear(x)        ==>    q, s, z = ..ReduceMax(x)..Round(RealDiv(x, s))..    as arithmetic
    y = ConvInteger(q, w, z)                         y = Sub(Conv2D(q, w), Mul(z, [sums of windows]))    sums of int32
    y = ConvInteger(q, w, z, pads)                   y = ...Conv2D(Round(RealDiv(Pad(x), s)) + z, w)...

What is around an image is its zero point, the byte of 0: so the image is padded with zeros before it is quantized. Nothing is
taken off where ``x`` is known not to be negative, since then ``z`` is 0. Convolutions of groups are summed in floats, which are
as exact where sums stay below ``2^24``. All convolutions that fit become kernels, or none does, as
:mod:`graphkernel.cluster.convolution_cost` says of the regions that follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.cluster.stored_weights import known
from graphkernel.ops import Tensor
from graphkernel.ops.library.host import attribute_values
from graphkernel.ops.library.windows import windows_over, with_places
from graphkernel.passes.base import Context, graph_pass
from graphkernel.passes.named_fusion.written_quant import given_operands, is_onnx
from graphkernel.passes.own_products import is_barred
from graphkernel.passes.precision.byte_convolutions import (
    bordered,
    has_margins,
    is_chosen,
    of_groups,
    padded,
    sums_of_bytes,
    taken_off,
)
from graphkernel.passes.precision.quantization import (
    INT32,
    UINT8,
    Array,
    cast,
    dynamically_quantized,
    quantized,
    with_sign,
)
from graphkernel.patterns.ranges import NON_NEGATIVE, Ranges
from kernelgen.tensor.graph import Builder, Graph, Node, Value, keep
from kernelgen.tensor.operators.nn import CONV2D
from kernelgen.tensor.types import Attrs

QUANTIZER = "DynamicQuantizeLinear"
IMAGE = 4
EXACT_TERMS = (1 << 24) // (4 * 255 * 128)
"""Of a window whose sum is exact in floats: bytes times bytes with a sign, less both zero points, two such bytes."""


class Weights(NamedTuple):
    """Integers ``[channels, channels of a group, rows, columns]`` of int8, and a zero point, or one for each channel."""

    numbers: Array
    zeros: Array

    @property
    def sums(self) -> Array:
        """What the zero point of an image is multiplied with: the sums of the windows, zero points taken off."""
        return self.numbers.sum((1, 2, 3), dtype=np.int32) - np.int32(self.numbers[0].size) * self.zeros


class Convolution(NamedTuple):
    """Weights, and the attributes of Conv2D."""

    weights: Weights
    attrs: Attrs


class Quantized(NamedTuple):
    """What bytes were made of, with the scale and the zero point, which may be known."""

    x: Value
    scale: Value
    zero: Value | Array


@graph_pass
def integer_convolutions(graph: Graph, context: Context) -> Graph:
    """ConvInteger with constant weights, and DynamicQuantizeLinear before it, as arithmetic and sums of bytes, by a cost."""
    found = {node: each for node in graph.operators if (each := _convolution(node)) is not None}
    first = next(iter(found), None)
    if first is None:
        return graph
    rewriter = _Rewriter(found, frozenset(node.args[0].node for node in found))
    made = with_unique_labels(graph.rebuild(rewriter.rewrite))
    convolutions = (node for node in made.operators if node.op is CONV2D)
    if any(is_barred(node, context.options) for node in (first, *convolutions)):
        return graph
    note = partial(context.log.add, integer_convolutions.name, subject=first.name)
    return made if is_chosen(made, note, f"{len(found)} convolutions of bytes") else graph


def _convolution(node: Node) -> Convolution | None:
    """The convolution of bytes with constant weights that a node is; None for others, and where its borders are not known."""
    if not is_onnx(node, "ConvInteger") or node.out.type.rank != IMAGE or node.args[0].type.dtype.name != UINT8:
        return None
    image, numbers, zero, zeros = operands(node)
    attrs, weights = _attributes(node), None if numbers is None else _weights(numbers, zeros)
    if image is None or weights is None or attrs is None or (zero is not None and zero.type.size != 1):
        return None
    is_exact = not of_groups(attrs) or weights.numbers[0].size <= EXACT_TERMS
    are_borders_known = zero is None or zero.is_known or is_onnx(image.node, QUANTIZER)
    return Convolution(weights, attrs) if is_exact and (are_borders_known or not has_margins(attrs)) else None


def operands(node: Node) -> tuple[Value | None, ...]:
    """Image, weights and their zero points."""
    return (*given_operands(node), None, None)[:4]


def _attributes(node: Node) -> Attrs | None:
    """Those of Conv2D; None where padding follows from symbols."""
    given, (image, kernel) = attribute_values(node), (arg.type.shape[2:] for arg in node.args[:2])
    windows = windows_over(image, kernel, given)
    if isinstance(windows, str):
        return None
    return Attrs.of(**with_places(windows, node.out.type.shape[2:]), group=given.get("group", 1))


def _weights(numbers: Value, zeros: Value | None) -> Weights | None:
    """Constant weights as int8: those without a sign less 128; None where they or their zero points are computed."""
    given, offsets = known(numbers), np.zeros(1, np.int32) if zeros is None else known(zeros)
    if given is None or offsets is None or offsets.size not in (1, len(given)):
        return None
    return Weights(*with_sign(given, offsets))


@dataclass
class _Rewriter:
    """Makes arithmetic of the convolutions that were found, and of what quantizes their images.

    ``quantized`` tells of bytes what they were made of.
    """

    found: Mapping[Node, Convolution]
    quantizers: frozenset[Node]
    quantized: dict[Value, Quantized] = field(default_factory=dict[Value, Quantized])
    ranges: Ranges = field(default_factory=Ranges)

    def rewrite(self, node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        """The values that replace the results of a node."""
        kept, builder = keep(node, args), Builder(origin=node.name)
        if node in self.quantizers and is_onnx(node, QUANTIZER):
            return self.quantizer(Tensor(args[0], builder))
        if node not in self.found:
            return kept.outs
        image, _, zero, _ = operands(kept)
        assert image is not None, "it was asked before"
        return (self.convolved(Tensor(image, builder), zero, self.found[node]).value,)

    def quantizer(self, x: Tensor) -> tuple[Value, ...]:
        """Bytes, scale and zero point."""
        is_positive = self.ranges.of(x.value) in NON_NEGATIVE
        bytes_, scale, zero = dynamically_quantized(x, len(x.shape), is_positive)
        offset = zero.value if isinstance(zero, Tensor) else zero
        self.quantized[bytes_.value] = Quantized(x.value, scale.value, offset)
        return bytes_.value, scale.value, offset if isinstance(offset, Value) else x.builder.constant(offset)

    def convolved(self, image: Tensor, zero: Value | None, found: Convolution) -> Tensor:
        """The sums, zero points taken off; ``zero`` is that of the ``image``, 0 if there is none."""
        weights, offset = found.weights, self.offset(image, zero)
        image, attrs = self.bordered(image, found.attrs, offset)
        total = taken_off(sums_of_bytes(image, attrs, weights.numbers), offset, weights.sums)
        if weights.zeros.any():
            total = total - self.seen(image, attrs, weights)
        return cast(total, INT32) if of_groups(attrs) else total

    def seen(self, image: Tensor, attrs: Attrs, weights: Weights) -> Tensor:
        """The sum of the bytes of each window times the zero point of its weights."""
        ones = np.ones_like(weights.numbers if of_groups(attrs) else weights.numbers[:1])
        sums = sums_of_bytes(image, attrs, ones)
        return sums * weights.zeros[:, None, None].astype(sums.dtype.numpy)

    def offset(self, image: Tensor, zero: Value | None) -> Tensor | Array:
        """The zero point of an ``image``, given as ``zero``; an array where it is known."""
        if image.value in self.quantized:
            given = self.quantized[image.value].zero
        else:
            number = np.zeros((), np.uint8) if zero is None else known(zero)
            given = zero if number is None else number
        return Tensor(given, image.builder) if isinstance(given, Value) else np.asarray(given).reshape(())

    def bordered(self, image: Tensor, attrs: Attrs, offset: Tensor | Array) -> tuple[Tensor, Attrs]:
        """An ``image`` with its zero point around it, and what is left of the ``attrs``: one with an ``offset`` that is not
        known is quantized behind its padding."""
        if not isinstance(offset, Tensor) or not has_margins(attrs):
            return bordered(image, attrs, 0 if isinstance(offset, Tensor) else int(offset))
        of = self.quantized[image.value]
        wide, left = padded(Tensor(of.x, image.builder), attrs, 0.0)
        return quantized(wide, Tensor(of.scale, image.builder), offset, UINT8), left
