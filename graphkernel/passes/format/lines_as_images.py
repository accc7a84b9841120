"""The pass lines_as_images: what stands between convolutions of one axis is computed on images of one row, as they are.

Before and after, with lines ``[N, C, W]`` and images ``[N, C, 1, W]``::

    l = Reshape(Conv2D(x, w))                ==>    i = Conv2D(x, w)
    a = Tanh(l)                                     b = Tanh(i)
    y = Conv2D(Reshape(a), v)                       y = Conv2D(b, v)

A convolution of one axis is read as one of images. So that all of a network's convolutions are one region
(:mod:`graphkernel.passes.format.image_regions`), a Reshape to a line moves behind what reads it, and meets the Reshape to an
image there. Where a line has its channels last, ``Transpose(l, (0, 2, 1))``, the image has them last as well, which in a region
with channels last moves nothing. A reduction along a line is one over its image.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.passes.base import Context, graph_pass
from graphkernel.passes.format.format_kinds import AXIS_FREE
from graphkernel.passes.format.layouts import IMAGE, TURNED, inverse, order
from kernelgen.tensor.graph import Builder, Graph, Node, Value, keep
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.nn import CONV2D
from kernelgen.tensor.operators.pieces import CONCAT, PAD
from kernelgen.tensor.operators.shape import RESHAPE, TRANSPOSE
from kernelgen.tensor.operators.type_rules import axes_of
from kernelgen.tensor.types import Shape

LINE, ROW = IMAGE - 1, 2
"""How many dims a line has, and where an image has the dim that a line lacks."""


@graph_pass
def lines_as_images(graph: Graph, context: Context) -> Graph:
    """Has what reads lines that convolutions make read their images."""
    del context
    if not any(node.op is CONV2D and _is_row(node.out.type.shape) for node in graph.operators):
        return graph
    made = graph.rebuild(_Rewriter().rewrite)
    return made if made is graph else with_unique_labels(made)


@dataclass
class _Rewriter:
    """Knows of each line the image that it was."""

    images: dict[Value, Value] = field(default_factory=dict[Value, Value])
    builder: Builder = field(default_factory=Builder)

    def rewrite(self, node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        """The values that replace the results of a node."""
        if node.op is RESHAPE:
            return (self._reshaped(node, args[0]),)
        if not any(arg in self.images for arg in args):
            return keep(node, args).outs
        if node.op is TRANSPOSE and node.attrs.ints("perm") == TURNED:
            last = self.builder.emit(TRANSPOSE, self.images[args[0]], perm=order(IMAGE))
            return (self.builder.emit(RESHAPE, last, shape=node.out.type.shape, name=node.name),)
        if _is_along(node):
            return (self._reduced(node, args[0]),)
        attrs = node.attrs
        if node.op is CONCAT:
            axis = attrs.int("axis") % LINE
            attrs = attrs.with_(axis=axis + (axis >= ROW))
        elif not _is_pointwise(node):
            return keep(node, args).outs
        image = self.builder.node(node.op, [self._image(arg) for arg in args], attrs, node.name).out
        return (self._line(image),)

    def _reshaped(self, node: Node, arg: Value) -> Value:
        """A Reshape between a line and its image, or another one."""
        before, after = arg.type.shape, node.out.type.shape
        if _is_row(after) and _without_row(after) == before:
            return self._image(arg)
        made = keep(node, (arg,)).out
        if _is_row(before) and _without_row(before) == after and not arg.is_known:
            self.images[made] = arg
        return made

    def _reduced(self, node: Node, arg: Value) -> Value:
        axes = axes_of(node.attrs.ints("axis"), LINE)
        attrs = node.attrs.with_(axis=tuple(sorted({ROW, *(axis + (axis >= ROW) for axis in axes)})))
        found = self.builder.node(node.op, [self._image(arg)], attrs, node.name).out
        return self._line(found) if found.type.rank == IMAGE else found

    def _line(self, image: Value) -> Value:
        line = self.builder.emit(RESHAPE, image, shape=_without_row(image.type.shape))
        self.images[line] = image
        return line

    def _image(self, value: Value) -> Value:
        """What is broadcast to images as a ``value`` is to lines."""
        shape = value.type.shape
        if value in self.images or len(shape) < ROW:
            return self.images.get(value, value)
        if value.constant is not None:
            return self.builder.constant(np.expand_dims(value.constant, -2), value.type.dtype)
        if value.op is TRANSPOSE and value.node.attrs.ints("perm") == TURNED:  # channels that were last stay so
            (source,) = value.node.args
            (count, width, channels) = source.type.shape
            last = self.builder.emit(RESHAPE, source, shape=(count, 1, width, channels))
            return self.builder.emit(TRANSPOSE, last, perm=inverse(IMAGE))
        if value.op is PAD and len(shape) == LINE:
            ends = value.node.attrs.ints("paddings")
            attrs = value.node.attrs.with_(paddings=(*ends[: 2 * ROW], 0, 0, *ends[2 * ROW :]))
            return self.builder.node(PAD, [self._image(value.node.args[0])], attrs, value.node.name).out
        return self.builder.emit(RESHAPE, value, shape=(*shape[:-1], 1, shape[-1]))


def _is_row(shape: Shape) -> bool:
    return len(shape) == IMAGE and shape[ROW] == 1


def _without_row(shape: Shape) -> Shape:
    return (*shape[:ROW], *shape[ROW + 1 :])


def _is_along(node: Node) -> bool:
    """Whether it reduces a line along its length, and has no other attributes than those that say so."""
    if node.op.kind is not Kind.REDUCE or set(node.attrs) - {"axis", "keep_dims"} or node.args[0].type.rank != LINE:
        return False
    return ROW in axes_of(node.attrs.ints("axis", ()), LINE)


def _is_pointwise(node: Node) -> bool:
    plain = node.op.kind is Kind.ELEMWISE and not node.op.composite and not set(node.attrs) - AXIS_FREE
    return plain and len(node.types) == 1 and node.out.type.rank == LINE
