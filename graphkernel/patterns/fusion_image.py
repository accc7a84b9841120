"""Convolutions of ours, channels last, in one kernel on a CPU with what puts their results side by side.

    y = Concat(relu(conv(x, v) + a), relu(conv(x, w) + b))        one kernel: each convolution stores its channels of y

What works on a convolution's elements joins it before others take it: reductions over pixels and pieces read what is stored.
What scales the pixels that it reads is computed with them, a few rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterable

from graphkernel.cluster.area import Area, Direction, Link, fusion
from graphkernel.cluster.attention import is_of_inputs
from graphkernel.cluster.cost import is_greater
from graphkernel.cluster.own_products import IMAGE, is_own
from graphkernel.cluster.split_models import Limits
from graphkernel.patterns.fusion_matmul import PRODUCTS, epilogues_of, is_prologue, product_of
from kernelgen.tensor.graph import Node
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.nn import CONV2D
from kernelgen.tensor.operators.pieces import CONCAT
from kernelgen.tensor.operators.shape import TRANSPOSE

MOST_WEIGHT_BYTES = 1 << 16
"""Of a product of pixels that passes all of them for every row of an image."""

FEW_CHANNELS = 4
"""Of a picture: they are read one by one, wherever they lie."""


@fusion(Direction.BACKWARD, kinds=(Kind.OPAQUE,), ops=PRODUCTS)
def image_depth(area: Area, limits: Limits) -> Iterable[Area]:
    """Pointwise users of an image's convolution that is a kernel of ours."""
    product = _convolution(area)
    return () if product is None else epilogues_of(product, area, limits)


@fusion(Direction.FORWARD, kinds=(Kind.OPAQUE,), ops=PRODUCTS)
def image_rows(area: Area, limits: Limits) -> Iterable[Area]:
    """What makes the pixels that a convolution of ours reads, for it alone: a cheap scale, or few channels put last."""
    found = _convolution(area)
    makers = [] if found is None else [link for link in area.inputs if found.args[0] in link.area.outputs]
    return [link.area for link in makers if found is not None and _is_read_in_place(found, link, limits)]


def _is_read_in_place(convolution: Node, link: Link, limits: Limits) -> bool:
    image, maker = convolution.args[0], link.area
    if convolution.op is CONV2D:
        channels = image.type.shape[-1]
        is_few = isinstance(channels, int) and channels <= FEW_CHANNELS
        return is_few and maker.lone(TRANSPOSE) is not None and maker.has_one_user
    return maker.elements == image.type.size and is_prologue(link, limits)


@fusion(Direction.FORWARD, kinds=(Kind.OPAQUE,), ops=(CONCAT,))
def image_parts(area: Area, limits: Limits) -> Iterable[Area]:
    """Convolutions of ours whose results, which nobody else needs, are parts of one image."""
    joints = [node for node in area.opaque if not is_own(node)]
    if [node.op for node in joints] != [CONCAT] or len(area.opaque) > limits.product_outputs:
        return ()
    makers = [
        link.area for link in area.inputs if link.area.has_one_user and set(link.area.outputs) & set(joints[0].args)
    ]
    return [maker for maker in makers if _goes_row_by_row(_convolution(maker))]


def _goes_row_by_row(convolution: Node | None) -> bool:
    """Whether it loses nothing when it computes one row of pixels after the other, as parts of an image do."""
    return convolution is not None and (
        convolution.op is CONV2D or not is_greater(convolution.args[1].type.bytes, MOST_WEIGHT_BYTES)
    )


def _convolution(area: Area) -> Node | None:
    """The only product or convolution of ours in an area, of an image."""
    product = product_of(area)
    if product is None or not is_own(product) or is_of_inputs(product):
        return None
    return product if product.types[0].rank == IMAGE else None
