"""The pass volumes_as_images: what stands between convolutions of volumes is computed on the images of their depths.

Before and after, with volumes ``[N, C, D, H, W]`` and images ``[D N, C, H, W]``::

    v = Transpose(Reshape(Conv2D(x, w)))     ==>    i = Conv2D(x, w)
    a = Maximum(v, 0)                               b = Maximum(i, 0)
    y = Conv2D(Reshape(Transpose(a)), u)            y = Conv2D(b, u)

So all of a network's convolutions are one region (:mod:`graphkernel.passes.format.image_regions`): what makes a volume of
images moves behind what computes point by point, and meets there what makes images of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.passes.base import Context, graph_pass
from graphkernel.passes.format.format_kinds import AXIS_FREE
from graphkernel.passes.format.layouts import CHANNELS_FIRST, DEPTHS_FIRST, VOLUME
from kernelgen.tensor.graph import Builder, Graph, Node, Value, keep
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.shape import RESHAPE, TRANSPOSE
from kernelgen.tensor.types import Shape

DEPTH = 2
"""Where a volume has its depths."""


@graph_pass
def volumes_as_images(graph: Graph, context: Context) -> Graph:
    """Has what reads volumes of images point by point read the images."""
    del context
    if not any(map(_is_volume, graph.operators)):
        return graph
    made = graph.rebuild(_Rewriter().rewrite)
    return made if made is graph else with_unique_labels(made)


@dataclass
class _Rewriter:
    """Knows of each volume the images that it was."""

    images: dict[Value, Value] = field(default_factory=dict[Value, Value])
    builder: Builder = field(default_factory=Builder)

    def rewrite(self, node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        """The values that replace the results of a node."""
        if node.op is RESHAPE and _is_turned(args[0]) and args[0].node.args[0] in self.images:
            images = self.images[args[0].node.args[0]]
            if images.type.shape == node.out.type.shape:
                return (images,)
        if _is_pointwise(node) and any(arg in self.images for arg in args):
            made = self.builder.node(node.op, [self._image(arg) for arg in args], node.attrs, node.name).out
            return (self._volume(made, node.out.type.shape),)
        kept = keep(node, args)
        if _is_volume(kept):
            self.images[kept.out] = args[0].node.args[0]
        return kept.outs

    def _volume(self, images: Value, shape: Shape) -> Value:
        count, channels, depths, *sides = shape
        apart = self.builder.emit(RESHAPE, images, shape=(depths, count, channels, *sides))
        volume = self.builder.emit(TRANSPOSE, apart, perm=CHANNELS_FIRST)
        self.images[volume] = images
        return volume

    def _image(self, value: Value) -> Value:
        """What is broadcast to images as a ``value`` is to volumes."""
        if value in self.images or value.type.size == 1:
            return self.images.get(value, value)
        shape = (1,) * (VOLUME - value.type.rank) + value.type.shape
        turned = value if len(shape) == value.type.rank else self.builder.emit(RESHAPE, value, shape=shape)
        count, channels, depths, *sides = shape
        if (count, depths) != (1, 1):
            turned = self.builder.emit(TRANSPOSE, turned, perm=DEPTHS_FIRST)
        return self.builder.emit(RESHAPE, turned, shape=(depths * count, channels, *sides))


def _is_volume(node: Node) -> bool:
    """Whether it makes a volume of images."""
    if node.op is not TRANSPOSE or node.attrs.ints("perm") != CHANNELS_FIRST or node.args[0].op is not RESHAPE:
        return False
    depths, count, *image = node.args[0].type.shape
    return node.args[0].node.args[0].type.shape == (depths * count, *image)


def _is_turned(value: Value) -> bool:
    return value.op is TRANSPOSE and value.node.attrs.ints("perm") == DEPTHS_FIRST


def _is_pointwise(node: Node) -> bool:
    plain = node.op.kind is Kind.ELEMWISE and not node.op.composite and not set(node.attrs) - AXIS_FREE
    shape = node.out.type.shape if len(node.types) == 1 else ()
    return plain and len(shape) == VOLUME and all(_fits(arg.type.shape, shape) for arg in node.args)


def _fits(shape: Shape, volume: Shape) -> bool:
    """Whether what is broadcast has all volumes and depths, or one of both."""
    count, _, depths, *_ = (1,) * (VOLUME - len(shape)) + shape
    return (count, depths) in ((1, 1), (volume[0], volume[DEPTH]))
