"""How many places a window has along an axis: convolutions, pools and their transposes, over extents that may be symbols."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from graphkernel.frontends.onnx.rules.base import OnnxCall, shape_of
from graphkernel.frontends.onnx.types.derived_extents import DerivedExtents
from kernelgen.tensor.types import Dim, Shape


@dataclass(frozen=True)
class _Axis:
    """One spatial axis: extent, window, stride, dilation, and the padding before and after."""

    extent: Dim
    window: Dim
    stride: int
    dilation: int
    before: Dim
    after: Dim

    @property
    def reach(self) -> Dim:
        """The elements from the first to the last of a window."""
        return (self.window - 1) * self.dilation + 1


def convolved(call: OnnxCall, weight: int = 1) -> Shape:
    """The result of a convolution; ``weight`` is the position of its operand."""
    x, w = shape_of(call.operands[0]), shape_of(call.operands[weight])
    return (x[0], w[0], *_places(call, x[2:], w[2:]))


def pooled(call: OnnxCall) -> Shape:
    """The result of a pool, and that of its indices, as onnxruntime has it.

    Its automatic padding is that of windows without dilation, and no window begins in the padding behind.
    """
    x = shape_of(call.operands[0])
    axes, round_up = _axes(call, x[2:], call.attribute("kernel_shape")), bool(call.attribute("ceil_mode", 0))
    if call.attribute("auto_pad", "NOTSET").startswith("SAME"):
        axes = [_padded(call.derive, axis) for axis in axes]
    return (*x[:2], *(_count(call.derive, axis, round_up) for axis in axes))


def _padded(derive: DerivedExtents, axis: _Axis) -> _Axis:
    """The axis with all automatic padding before it."""
    places = derive.ceil_div(axis.extent, axis.stride)
    padding = derive.greatest((places - 1) * axis.stride + axis.window - axis.extent, 0)
    return replace(axis, before=padding)


def transposed(call: OnnxCall) -> Shape:
    """The result of a transposed convolution."""
    x, w = shape_of(call.operands[0]), shape_of(call.operands[1])
    channels = w[1] * call.attribute("group", 1)
    if "output_shape" in call.attributes:
        return (x[0], channels, *call.attribute("output_shape")[-len(x[2:]) :])
    more = call.attribute("output_padding", (0,) * len(x[2:]))
    if call.attribute("auto_pad", "NOTSET").startswith("SAME"):
        strides = call.attribute("strides", (1,) * len(x[2:]))
        return (x[0], channels, *(extent * stride for extent, stride in zip(x[2:], strides, strict=True)))
    axes = zip(_axes(call, x[2:], w[2:]), more, strict=True)
    sizes = ((a.extent - 1) * a.stride + extra + a.reach - a.before - a.after for a, extra in axes)
    return (x[0], channels, *sizes)


def _places(call: OnnxCall, extents: Shape, window: Shape) -> Shape:
    axes = _axes(call, extents, window)
    if call.attribute("auto_pad", "NOTSET").startswith("SAME"):
        return tuple(call.derive.ceil_div(axis.extent, axis.stride) for axis in axes)
    return tuple(_count(call.derive, axis) for axis in axes)


def _count(derive: DerivedExtents, axis: _Axis, round_up: bool = False) -> Dim:
    """The number of windows; rounded up, the last one is there if it begins before the padding behind.

    As onnxruntime divides, there is one window where it is larger by less than a stride than what it is put on.
    """
    room = axis.extent + (axis.before + axis.after) - axis.reach
    if not round_up:
        return derive.windows(room, axis.stride)
    count = derive.ceil_div(room, axis.stride) + 1
    if derive.is_nonnegative(axis.reach - axis.after - axis.stride):
        return count
    return derive.least(count, derive.ceil_div(axis.extent + axis.before, axis.stride))


def _axes(call: OnnxCall, extents: Shape, window: Shape) -> Sequence[_Axis]:
    rank = len(extents)
    ones, pads = (1,) * rank, call.attribute("pads", (0,) * (2 * rank))
    if call.attribute("auto_pad", "NOTSET") != "NOTSET":
        pads = (0,) * (2 * rank)
    parts = (extents, window, call.attribute("strides", ones), call.attribute("dilations", ones))
    return [_Axis(*each) for each in zip(*parts, pads[:rank], pads[rank:], strict=True)]
