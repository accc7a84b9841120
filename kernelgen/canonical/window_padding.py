"""Convolutions of a graph without padding of their own: what is around an image is an operator, as AKG writes it.

    y = Conv2D(x, w, pad=(1, 1, 1, 1), format="NHWC")    ->    p = PadAkg(x, head=(0, 1, 1, 0), tail=(0, 1, 1, 0))
                                                               y = Conv2D(p, w, format="NHWC")

So no loop over a window asks whether an element is inside, and a chain that computes ``x`` joins the copy. Windows of single
channels, and of images of few channels, are left alone: a copy takes as long as they do.
"""

from __future__ import annotations

from kernelgen.composite.description import KernelDesc
from kernelgen.composite.rewriting import Rewriting
from kernelgen.composite.window_shapes import are_in_lanes, has_few_channels, is_by_channel, is_channels_last
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operators.nn import CONV2D
from kernelgen.tensor.operators.padding import PAD_AKG


def pad_images(desc: KernelDesc) -> KernelDesc:
    """The description with the padding of windows written out."""
    walk = Rewriting(desc, "padded")
    for node in desc.operators:
        margins = node.attrs.ints("pad", (0, 0, 0, 0)) if _is_padded(node) else ()
        if not any(margins):
            walk.keep(node)
            continue
        image, *others = walk.args(node)
        padded = _padded(walk, image, margins)
        walk.keep(node, (padded, *others), attrs=node.attrs.without("pad"))
    return walk.done()


def _is_padded(node: Node) -> bool:
    if node.op is not CONV2D or "places" in node.attrs:
        return False
    return is_channels_last(node) and not (is_by_channel(node) or has_few_channels(node) or are_in_lanes(node))


def _padded(walk: Rewriting, image: Value, margins: tuple[int, ...]) -> Value:
    """The image with zeros around its rows and columns: top, bottom, left and right."""
    top, bottom, left, right = margins
    attrs = Attrs.of(head=(0, top, left, 0), tail=(0, bottom, right, 0), pad_val=0.0)
    (type_,) = PAD_AKG.infer((image.type,), attrs)
    return walk.make(PAD_AKG, (image,), type_, attrs)
