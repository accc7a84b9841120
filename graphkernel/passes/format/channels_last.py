"""What operators on images are where channels come last: NHWC, ``[N, H, W, C]``, instead of NCHW.

A form makes an operator's results with channels last from operands with channels last; constants come as the graph has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from graphkernel.ops.library.host import ONNX
from graphkernel.passes.format.convolutions_last import CONVOLVED, has_form, images_of
from graphkernel.passes.format.format_kinds import AXIS_FREE
from graphkernel.passes.format.layouts import FLOAT, IMAGE, Form, inverse, is_image, is_pixel, moved, order
from graphkernel.passes.format.resized_rows import is_resized, resized
from kernelgen.tensor.graph import Builder, Node, Value
from kernelgen.tensor.operator import Kind, Operator
from kernelgen.tensor.operators.creation import EXTENT
from kernelgen.tensor.operators.elemwise import DIV, MINIMUM, MUL
from kernelgen.tensor.operators.nn import AVG_POOL, BYTE_SUMS, MAX_POOL, NHWC, is_nhwc
from kernelgen.tensor.operators.padding import PAD_AKG
from kernelgen.tensor.operators.pieces import CONCAT, SPLIT, STRIDED_SLICE
from kernelgen.tensor.operators.pool import POOL2D
from kernelgen.tensor.operators.shape import BROADCAST_TO, RESHAPE, TRANSPOSE
from kernelgen.tensor.operators.type_rules import OWN_KERNEL, axes_of
from kernelgen.tensor.types import Attrs, Shape

POOLINGS = {MAX_POOL: "max", AVG_POOL: "avg"}


def form_of(node: Node, split: Callable[[Value], bool]) -> Form | None:
    """The form of an operator, None where it has none; ``split`` tells of values of two dims for channels."""
    if node.op.kind is not Kind.ELEMWISE and any(image.is_known for image in images_in(node)):
        return (
            None  # a constant comes as the graph has it, and only what is read point by point is put into another order
        )
    if node.op in CONVOLVED:
        return CONVOLVED[node.op] if has_form(node) else None
    if node.op in POOLINGS:
        return _pooled if _has_kernel(node) else None
    if node.op is RESHAPE:
        return _reshaped if _splits_channels(node) or (split(node.args[0]) and _joins_channels(node)) else None
    if node.op is TRANSPOSE:
        return _shuffled if split(node.args[0]) and node.attrs.ints("perm") == (0, 2, 1, 3, 4) else None
    if not all(map(is_image, node.outs)):
        return None
    if is_resized(node):
        return resized
    if node.op in MOVED:
        return MOVED[node.op] if all(map(is_image, node.args)) else None
    if node.op.kind is Kind.REDUCE:
        return _reduced if node.attrs.bool("keep_dims", False) and set(node.attrs) <= {"axis", "keep_dims"} else None
    return _pointwise if _is_pointwise(node) else None


def images_in(node: Node) -> tuple[Value, ...]:
    """The operands that the form of a ``node`` takes with channels last, where they are images."""
    return images_of(node)[0] if node.op in CONVOLVED else node.args[:1] if node.op is ONNX else node.args


def images_out(node: Node) -> tuple[Value, ...]:
    """The results that the form of a ``node`` makes with channels last."""
    return images_of(node)[1] if node.op in CONVOLVED else node.outs


def exit_of(node: Node) -> Form | None:
    """The form of an operator that reads one image with channels last, and whose result is none: it is what it was before."""
    if node.op is TRANSPOSE:
        return _transposed
    if node.op is RESHAPE and is_pixel(node.args[0]):
        return lambda node, args, builder: (builder.emit(RESHAPE, args[0], shape=node.out.type.shape, name=node.name),)
    return _reduced if node.op.kind is Kind.REDUCE and _keeps_order(node) else None


def _keeps_order(node: Node) -> bool:
    """Whether the dims that a reduction leaves stand in one order in both layouts."""
    axes = axes_of(node.attrs.ints("axis", ()), IMAGE) if node.args[0].type.rank == IMAGE else ()
    left = [axis for axis in order(IMAGE) if axis not in axes]
    return bool(axes) and left == sorted(left) and set(node.attrs) <= {"axis", "keep_dims"}


def _transposed(node: Node, args: Sequence[Value], builder: Builder) -> tuple[Value, ...]:
    back = inverse(args[0].type.rank)
    return (moved(args[0], tuple(back[axis % len(back)] for axis in node.attrs.ints("perm")), builder),)


def _has_kernel(node: Node) -> bool:
    if node.out.type.dtype not in (FLOAT, BYTE_SUMS) or is_nhwc(node.attrs):
        return False
    is_known = len(_extents(node.args[0])) == len(_extents(node.out)) == 2
    hangs_over = any(node.attrs.ints("pad", (0, 0, 0, 0))) or node.attrs.bool("ceil_mode", False)
    is_whole = node.op is MAX_POOL or not hangs_over
    return set(node.attrs.ints("dilation", (1, 1))) == {1} and (is_known or is_whole)


def _is_pointwise(node: Node) -> bool:
    if node.op.kind is not Kind.ELEMWISE or node.op.composite or len(node.types) != 1 or set(node.attrs) - AXIS_FREE:
        return False
    return all(is_image(arg) or arg.type.rank < IMAGE or arg.is_known for arg in node.args)


def _pointwise(node: Node, args: Sequence[Value], builder: Builder) -> tuple[Value, ...]:
    operands = [
        new if is_image(old) else _repeated_last(new, builder) for old, new in zip(node.args, args, strict=True)
    ]
    return builder.node(node.op, operands, node.attrs, node.name).outs


def _repeated_last(value: Value, builder: Builder) -> Value:
    """What is broadcast to images; a constant without leading dims of extent 1."""
    known, rank = value.constant, value.type.rank
    if rank == 0:
        return value
    if known is None:
        whole = (1,) * (IMAGE - rank) + value.type.shape
        return moved(builder.emit(RESHAPE, value, shape=whole), order(IMAGE), builder)
    last = np.transpose(known.reshape((1,) * (IMAGE - known.ndim) + known.shape), order(IMAGE))
    while last.ndim and last.shape[0] == 1:
        last = last[0]
    return builder.constant(np.ascontiguousarray(last), value.type.dtype)


def _pooled(node: Node, args: Sequence[Value], builder: Builder) -> tuple[Value, ...]:
    """AKG's pooling, which counts all of each window in a mean."""
    size, stride = node.attrs.ints("kernel_size"), node.attrs.ints("stride", (1, 1))
    top, _, left, _ = node.attrs.ints("pad", (0, 0, 0, 0))
    attrs = Attrs.of(pool_type=POOLINGS[node.op], kernel_size=size, strides=stride)
    if len(_extents(node.args[0])) < 2:
        attrs = attrs.with_(pad=(top, left, 0, 0), places=node.out.type.shape[2:])
    else:
        sizes = zip((top, left), size, stride, _extents(node.args[0]), _extents(node.out), strict=True)
        after = (max(0, (count - 1) * step + side - extent - before) for before, side, step, extent, count in sizes)
        attrs = attrs.with_(pad=(top, left, *after))
    pooled = builder.node(POOL2D, args, attrs.with_(data_layout=NHWC, **{OWN_KERNEL: True}), node.name).out
    for share in _shares(node, attrs, builder) if node.op is AVG_POOL else ():
        pooled = builder.emit(MUL, pooled, share)
    return (pooled,)


def _shares(node: Node, attrs: Attrs, builder: Builder) -> Iterator[Value]:
    """What the mean of each window over all of it is multiplied by, to be that over what it has of the image.

    Of known extents that is a constant, [H, W, 1]. Of open ones, around which is no padding, a window longer than the image by
    less than a stride still has its place: ``size / min(extent, size)``.
    """
    extents = node.args[0].type.shape[2:]
    if len(_extents(node.args[0])) == len(extents):
        if _counts_all(node, attrs):
            return
        ones = np.ones((1, 1, *_extents(node.args[0])), np.float32)
        share = np.asarray(node.op.meaning(ones, attrs=node.attrs) / POOL2D.meaning(ones, attrs=attrs))
        if np.any(share != 1):
            yield builder.constant(share.astype(np.float32)[0, 0, :, :, None])
        return
    for extent, side, step in zip(extents, attrs.ints("kernel_size"), attrs.ints("strides"), strict=True):
        if step > 1 and not (isinstance(extent, int) and extent >= side):
            whole = builder.constant(np.float32(side))
            there = builder.emit(MINIMUM, builder.emit(EXTENT, value=extent, dst_type=FLOAT.name), whole)
            yield builder.emit(DIV, whole, there)


def _counts_all(node: Node, attrs: Attrs) -> bool:
    """Whether a mean is over all of each window: it lies in the image, or in padding that counts and does not hang over."""
    (_, bottom, _, right), (*_, below, beside) = node.attrs.ints("pad", (0, 0, 0, 0)), attrs.ints("pad")
    is_counted = node.attrs.bool("count_include_pad", False) and below <= bottom and beside <= right
    return is_counted or not any(attrs.ints("pad"))


def _extents(image: Value) -> tuple[int, ...]:
    """Rows and columns, which are known."""
    return tuple(dim for dim in image.type.shape[2:] if isinstance(dim, int))


def _reduced(node: Node, args: Sequence[Value], builder: Builder) -> tuple[Value, ...]:
    axes = axes_of(node.attrs.ints("axis", ()), IMAGE)
    last = tuple(sorted(order(IMAGE).index(axis) for axis in axes))
    return builder.node(node.op, args, node.attrs.with_(axis=last), node.name).outs


def _along(node: Node, args: Sequence[Value], builder: Builder) -> tuple[Value, ...]:
    axis = order(IMAGE).index(node.attrs.int("axis") % IMAGE)
    return builder.node(node.op, args, node.attrs.with_(axis=axis), node.name).outs


def _padded(node: Node, args: Sequence[Value], builder: Builder) -> tuple[Value, ...]:
    ends = {name: tuple(node.attrs.ints(name)[d] for d in order(IMAGE)) for name in ("head", "tail")}
    return builder.node(node.op, args, node.attrs.with_(**ends), node.name).outs


def _sliced(node: Node, args: Sequence[Value], builder: Builder) -> tuple[Value, ...]:
    begin, end, strides = node.attrs.dims("begin"), node.attrs.dims("end"), node.attrs.ints("strides")
    last = {name: tuple(given[d] for d in order(IMAGE)) for name, given in (("begin", begin), ("end", end))}
    attrs = node.attrs.with_(**last, strides=tuple(strides[d] for d in order(IMAGE)))
    return builder.node(node.op, args, attrs, node.name).outs


def _splits_channels(node: Node) -> bool:
    return is_image(node.args[0]) and _same_but_channels(node.args[0].type.shape, node.out.type.shape)


def _joins_channels(node: Node) -> bool:
    return is_image(node.out) and _same_but_channels(node.out.type.shape, node.args[0].type.shape)


def _same_but_channels(image: Shape, parts: Shape) -> bool:
    return len(parts) == IMAGE + 1 and (image[0], *image[2:]) == (parts[0], *parts[3:])


def _reshaped(node: Node, args: Sequence[Value], builder: Builder) -> tuple[Value, ...]:
    shape = node.out.type.shape
    return (builder.emit(RESHAPE, args[0], shape=tuple(shape[d] for d in order(len(shape))), name=node.name),)


def _shuffled(node: Node, args: Sequence[Value], builder: Builder) -> tuple[Value, ...]:
    return (builder.emit(TRANSPOSE, args[0], perm=(0, 1, 2, 4, 3), name=node.name),)


def _broadcast(node: Node, args: Sequence[Value], builder: Builder) -> tuple[Value, ...]:
    shape = node.attrs.dims("shape")
    return builder.node(node.op, args, node.attrs.with_(shape=tuple(shape[d] for d in order(IMAGE))), node.name).outs


MOVED: Mapping[Operator, Form] = {
    CONCAT: _along, SPLIT: _along, STRIDED_SLICE: _sliced, PAD_AKG: _padded, BROADCAST_TO: _broadcast
}  # fmt: skip
