"""Convolutions of volumes [N, C, D, H, W], windows of three axes, as convolutions of images: of each depth one, [D N, C, H, W].

    y[d] = sum over t of Conv2D(x[s d + r t], w[t])    =    Conv2D(x[s d] beside x[s d + r] beside ..., w[0] above w[1] ...)

Images of the depths that a window reaches lie beside each other as channels, so that their sum is the convolution's own.
What was a volume is one again behind it; :mod:`graphkernel.passes.format.volumes_as_images` has what stands between two of
them computed on images.
"""

from __future__ import annotations

from math import prod

from graphkernel import ops
from graphkernel.frontends.onnx.rules.base import Declined, OnnxCall, Operand, Results, shape_of, static
from graphkernel.ops.catalogue import apply
from graphkernel.ops.tensor.tensor import Tensor
from graphkernel.passes.format.layouts import CHANNELS_FIRST, DEPTHS_FIRST
from kernelgen.tensor.operators.padding import PAD_AKG
from kernelgen.tensor.types import dtype


def convolved_volume(call: OnnxCall) -> Results:
    """Of float32 of known extents, by constant weights of all channels."""
    x, weight = call.operands[:2]
    shape, window = static(shape_of(x)), static(shape_of(weight))
    if shape is None or window is None or dtype(x.dtype) != dtype("float32"):
        return Declined("no float32, or open extents")
    if call.attribute("group", 1) != 1 or call.attribute("auto_pad", "NOTSET") != "NOTSET":
        return Declined("groups, or padding that follows from the result")
    if isinstance(weight, Tensor) and not weight.value.is_known:
        return Declined("weights that are computed")
    (step, *stride), (apart, *dilation) = (tuple(call.attribute(name, (1, 1, 1))) for name in ("strides", "dilations"))
    front, top, left, back, bottom, right = call.attribute("pads", (0,) * 6)
    (count, _, depth, *_), (results, channels, taps, *sides) = shape, window
    if step > 1 and count > 1:
        return Declined("steps between the depths of several volumes")
    depths = (depth + front + back - apart * (taps - 1) - 1) // step + 1
    images = _images(x, (count * front, count * back))
    seen = [images[count * apart * t : count * (apart * t + step * (depths - 1) + 1) : step] for t in range(taps)]
    held = ops.reshape(ops.transpose(weight, (0, 2, 1, 3, 4)), (results, taps * channels, *sides))
    found = ops.conv2d(
        ops.concat(seen, axis=1) if taps > 1 else seen[0], held,
        stride=tuple(stride), dilation=tuple(dilation), pad=(top, bottom, left, right),
    )  # fmt: skip
    found = ops.bias_add(found, call.operand(2)) if call.has(2) else found
    return ops.transpose(ops.reshape(found, (depths, count, *found.shape[1:])), CHANNELS_FIRST)


def _images(x: Operand, around: tuple[int, int]) -> Tensor:
    """Those of all depths, with so many images of zeros before and behind."""
    turned = ops.transpose(x, DEPTHS_FIRST)
    shape = [int(str(dim)) for dim in turned.shape]
    images = ops.reshape(turned, (prod(shape[:2]), *shape[2:]))
    before, behind = around
    if not any(around):
        return images
    return apply(PAD_AKG, images, head=(before, 0, 0, 0), tail=(behind, 0, 0, 0), pad_val=0.0, own_kernel=True)
