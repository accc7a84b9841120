"""Convolutions on bytes that are kernels of ours: their sums, what lies around an image, and whether they pay."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graphkernel.cluster.convolution_cost import region_cost
from graphkernel.cluster.product_cost import WORD_BYTES, Cycles
from graphkernel.ops import Tensor, apply
from graphkernel.passes.format.image_regions import image_regions
from graphkernel.passes.precision.quantization import BYTE_HALF, Array, cast
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.operators.nn import CONV2D
from kernelgen.tensor.operators.padding import PAD_AKG
from kernelgen.tensor.types import Attrs


def raised(zero: Array) -> Array:
    """The zero point of bytes of int8 that are taken as bytes of uint8, 128 more each."""
    return (zero.astype(np.int32) + BYTE_HALF).astype(np.uint8)


def sums_of_bytes(image: Tensor, attrs: Attrs, weights: Array) -> Tensor:
    """The sums of the convolution of an ``image`` of uint8, with ``attrs``, both as :func:`bordered` made them, with
    ``weights`` of int8: int32, or float32 where windows have the channels of a group."""
    if of_groups(attrs):
        return apply(CONV2D, image, weights.astype(np.float32), **attrs)
    beside = -weights.shape[1] % WORD_BYTES
    return apply(CONV2D, image, np.pad(weights, ((0, 0), (0, beside), (0, 0), (0, 0))) if beside else weights, **attrs)


def taken_off(total: Tensor, zero: Tensor | Array, sums: Array) -> Tensor:
    """The ``total`` less a ``zero`` point, one number, times ``sums``, one for each channel or one for all."""
    by_channels = sums[:, None, None].astype(total.dtype.numpy)
    if isinstance(zero, Tensor):
        return total - cast(zero, total.dtype.name) * by_channels
    return total - zero.astype(total.dtype.numpy) * by_channels if zero.any() else total


def of_groups(attrs: Attrs) -> bool:
    """Whether windows have the channels of a group: those are multiplied as floats, since groups are seldom whole words."""
    return attrs.int("group", 1) > 1


def bordered(image: Tensor, attrs: Attrs, zero: int) -> tuple[Tensor, Attrs]:
    """An ``image`` with its ``zero`` point written out around it, where that is not 0, and in channels up to whole words; and
    what is left of the ``attrs`` of its convolution."""
    if zero and has_margins(attrs):
        return padded(image, attrs, zero)
    return (padded(image, attrs.with_(pad=(0, 0, 0, 0)), 0)[0] if _beside(image, attrs) else image), attrs


def has_margins(attrs: Attrs) -> bool:
    """Whether windows see what is around an image."""
    return any(attrs.ints("pad", (0, 0, 0, 0)))


def padded(image: Tensor, attrs: Attrs, value: float) -> tuple[Tensor, Attrs]:
    """An ``image`` with a ``value`` in the margins that ``attrs`` say, and in channels up to whole words; and what is left of
    the ``attrs``."""
    top, bottom, left, right = attrs.ints("pad", (0, 0, 0, 0))
    head, tail = (0, 0, top, left), (0, _beside(image, attrs), bottom, right)
    return apply(PAD_AKG, image, head=head, tail=tail, pad_val=value, own_kernel=True), attrs.with_(pad=(0, 0, 0, 0))


def _beside(image: Tensor, attrs: Attrs) -> int:
    """The channels up to whole words."""
    channels = image.shape[1]
    return -channels % WORD_BYTES if isinstance(channels, int) and not of_groups(attrs) else 0


def is_chosen(made: Graph, note: Callable[..., None], what: str, is_whole: bool = True) -> bool:
    """Whether a graph that was ``made``, if it ``is_whole``, takes the place of its original: all of its convolutions may be
    kernels, which are faster than a library.

    ``note`` is called with the code of the reason, and with a ``message``: ``what`` the convolutions are, and their cost.
    """
    regions = image_regions(made)
    costs = [region_cost(region.convolutions, region.borders) for region in regions]
    held = {node for region in regions for node in region.convolutions}
    total = Cycles(sum(cost.own for cost in costs), sum(cost.library for cost in costs))
    is_own = is_whole and total.is_own and all(node in held for node in made.operators if node.op is CONV2D)
    note("own-convolution" if is_own else "not-own-convolution", message=f"{what}; {total}")
    return is_own
