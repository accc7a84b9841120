"""Operators that move, repeat, cut or join elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np

from graphkernel import ops
from graphkernel.errors import TypeRuleError
from graphkernel.frontends.onnx.rules.base import (
    Declined,
    OnHost,
    OnnxCall,
    Operand,
    Results,
    onnx_op,
    shape_of,
    sliced_range,
    static,
)
from graphkernel.frontends.onnx.rules.positions import cut_by_places, run_of
from graphkernel.frontends.onnx.types.derived_extents import DependsOnDataError, DerivedExtents
from kernelgen.tensor.operators.shape import TRANSPOSE
from kernelgen.tensor.operators.type_rules import broadcast_shapes
from kernelgen.tensor.types import Dim, Sym, product

BEYOND_EVERY_END = 10**9  # exporters spell "to the end" as this, 2**31 - 1 or 2**63 - 1; no axis is as long
RUN_TIME_SHAPE = Declined("the shape is computed at run time")


@onnx_op("Reshape")
def reshape(call: OnnxCall) -> Results:
    """0 keeps an extent (unless ``allowzero``), one -1 is worked out.

    Raises ValueError where the elements do not divide into the wished shape.
    """
    x, target = call.operands[0], call.dims(1)
    if target is None:
        return RUN_TIME_SHAPE
    have = shape_of(x)
    keeps_zero = bool(call.attribute("allowzero", 0))
    dims = tuple(have[i] if d == 0 and not keeps_zero else d for i, d in enumerate(target))
    if dims.count(-1) == 1:
        known = product(dim for dim in dims if dim != -1)
        if known == 0:
            return Declined(f"the -1 of {dims} cannot be worked out from {have}")
        missing = call.derive.floor_div(product(have), known)
        dims = tuple(missing if dim == -1 else dim for dim in dims)
    wanted, given = static(dims), static(have)
    if wanted is not None and given is not None and prod(wanted) != prod(given):
        raise ValueError(f"{given} cannot be reshaped to {wanted}")
    try:
        return ops.reshape(x, dims)
    except TypeRuleError as error:  # that there are as many elements follows from what extents are derived from
        return OnHost(dims, str(error))


@onnx_op(TRANSPOSE.onnx)
def transpose(call: OnnxCall) -> Results:
    """Without ``perm`` the axes are reversed."""
    return ops.transpose(call.operands[0], call.attribute("perm"))


@onnx_op("DepthToSpace")
def depth_to_space(call: OnnxCall) -> Results:
    """Channels become the points of a block; these are their major part, or with ``CRD`` their minor one."""
    n, channels, *space = shape_of(call.operands[0])
    size = call.attribute("blocksize")
    rest = call.derive.floor_div(channels, size**2)
    is_minor = call.attribute("mode", "DCR") == "CRD"
    parts = (rest, size, size) if is_minor else (size, size, rest)
    order = (0, 1, 4, 2, 5, 3) if is_minor else (0, 3, 4, 1, 5, 2)
    moved = ops.transpose(ops.reshape(call.operands[0], (n, *parts, *space)), order)
    return ops.reshape(moved, (n, rest, *(extent * size for extent in space)))


@onnx_op("SpaceToDepth")
def space_to_depth(call: OnnxCall) -> Results:
    """The points of a block become the major part of the channels, or with ``CRD`` the minor one."""
    n, channels, *space = shape_of(call.operands[0])
    size = call.attribute("blocksize")
    height, width = (call.derive.floor_div(extent, size) for extent in space)
    order = (0, 1, 3, 5, 2, 4) if call.attribute("mode", "DCR") == "CRD" else (0, 3, 5, 1, 2, 4)
    moved = ops.transpose(ops.reshape(call.operands[0], (n, channels, height, size, width, size)), order)
    return ops.reshape(moved, (n, channels * size**2, height, width))


@onnx_op("Unsqueeze")
def unsqueeze(call: OnnxCall) -> Results:
    """New axes of extent 1."""
    axes = call.axes(1, since=13)
    return axes if isinstance(axes, Declined) else ops.expand_dims(call.operands[0], axes or ())


@onnx_op("Squeeze")
def squeeze(call: OnnxCall) -> Results:
    """Without axes, all of extent 1 go."""
    axes = call.axes(1, since=13)
    if axes is None and static(shape_of(call.operands[0])) is None:
        return Declined("which extents are 1 is known at run time")
    return axes if isinstance(axes, Declined) else ops.squeeze(call.operands[0], axes)


@onnx_op("Flatten")
def flatten(call: OnnxCall) -> Results:
    """To a matrix."""
    x, axis = call.operands[0], call.attribute("axis", 1)
    split = axis if axis >= 0 else axis + len(shape_of(x))
    return ops.reshape(x, (product(shape_of(x)[:split]), product(shape_of(x)[split:])))


@onnx_op("Expand")
def expand(call: OnnxCall) -> Results:
    """Both shapes broadcast against each other."""
    target = call.dims(1)
    if target is None:
        return RUN_TIME_SHAPE
    x = call.operands[0]
    shape = broadcast_shapes((shape_of(x), target))
    return x if shape == shape_of(x) else ops.broadcast_to(x, shape)


@onnx_op("Tile")
def tile(call: OnnxCall) -> Results:
    """Repeats along each axis; before opset 6 along one, which is an operand.

    Raises ValueError for a number of times that is none.
    """
    repeats = call.dims(1) if call.opset >= 6 else None
    if any(isinstance(count, int) and count < 0 for count in repeats or ()):
        raise ValueError(f"{repeats} is no number of times")
    return RUN_TIME_SHAPE if repeats is None else ops.tile(call.operands[0], repeats)


@onnx_op("Concat")
def concat(call: OnnxCall) -> Results:
    """Operands without elements add nothing; one alone is the result."""
    if len(call.operands) == 1:
        return call.operands[0]
    return ops.concat(call.operands, axis=call.attribute("axis"))


@onnx_op("Split")
def split(call: OnnxCall) -> Results:
    """Sizes are an attribute before opset 13; without sizes the parts are equal, the last may be smaller."""
    x, axis = call.operands[0], call.attribute("axis", 0)
    sizes = call.attribute("split") if call.opset < 13 else call.ints(1)
    extent = shape_of(x)[axis]
    if sizes is None:
        if call.has(1) or isinstance(extent, Sym):
            return Declined("the sizes are computed at run time")
        part = -(-extent // call.listed)
        sizes = tuple(min(part, extent - index * part) for index in range(call.listed))
    return ops.split(x, tuple(sizes), axis=axis)


@onnx_op("Slice")
def cut(call: OnnxCall) -> Results:
    """Bounds are attributes before opset 10; they count from the end when negative and are cut to the extent."""
    x = call.operands[0]
    have = shape_of(x)
    parts = _slice_parts(call)
    if isinstance(parts, Declined):
        return parts
    begin: list[Dim] = [0] * len(have)
    end, strides = list(have), [1] * len(have)
    for axis, start, stop, step in parts:
        begin[axis], end[axis] = _clamped(call.derive, have[axis], start, stop, step)
        strides[axis] = step
    try:
        return ops.strided_slice(x, begin, end, strides)
    except TypeRuleError as error:  # nothing but the graph says that a symbolic bound lies within
        extents = list(have)
        for axis, *_ in parts:
            extents[axis] = _extent(call.derive, begin[axis], end[axis], strides[axis])
        if not all(call.derive.is_nonnegative(extent - 1) for extent in extents):
            return OnHost(tuple(extents), str(error))
        return cut_by_places(call, tuple(zip(begin, strides, extents, strict=True)))


def _slice_parts(call: OnnxCall) -> list[tuple[int, Dim, Dim, int]] | Declined:
    """(axis, start, stop, step) of each axis that is cut."""
    if call.opset < 10:
        starts, ends, axes, steps = call.attribute("starts"), call.attribute("ends"), call.attribute("axes"), None
    else:
        starts, ends, axes, steps = call.dims(1), call.dims(2), call.ints(3), call.ints(4)
    if starts is None or ends is None or (axes is None and call.has(3)) or (steps is None and call.has(4)):
        return Declined("the bounds are computed at run time")
    return list(zip(axes or range(len(starts)), starts, ends, steps or (1,) * len(starts), strict=True))


def _clamped(derive: DerivedExtents, extent: Dim, start: Dim, stop: Dim, step: int) -> tuple[Dim, Dim]:
    """Bounds as ``StridedSlice`` takes them: counted from the front and cut to the extent, whatever they are."""
    if isinstance(extent, int) and isinstance(start, int) and isinstance(stop, int):
        return sliced_range(extent, start, stop, step)
    lowest, highest = (0, extent) if step > 0 else (-1, extent - 1)
    begin, end = (_counted_from_front(derive, extent, bound, step) for bound in (start, stop))
    return (
        derive.least(derive.greatest(begin, 0), highest),
        derive.least(derive.greatest(end, lowest), highest),
    )


def _counted_from_front(derive: DerivedExtents, extent: Dim, bound: Dim, step: int) -> Dim:
    """A negative bound counts from the end; one far beyond is cut, so that the sum is no large number.

    Where steps lead to the front, what lies before it is another place than the first.
    """
    if derive.is_nonnegative(bound):
        return extent if isinstance(bound, int) and bound >= BEYOND_EVERY_END else bound
    if derive.is_nonnegative(-1 - bound):
        return -1 if isinstance(bound, int) and bound <= -BEYOND_EVERY_END else extent + bound
    if step < 0:
        raise DependsOnDataError(f"whether {bound} counts from the end")
    return derive.from_front(bound, extent)


def _extent(derive: DerivedExtents, begin: Dim, end: Dim, step: int) -> Dim:
    """The number of elements."""
    room = end - begin if step > 0 else begin - end
    return derive.greatest(derive.ceil_div(room, abs(step)), 0)


Run = tuple[Dim, int]
"""Where a run of elements begins along an axis, and how far the next one is."""

RUNS: Mapping[str, Callable[[int, Dim], tuple[Run, Run]]] = {
    "reflect": lambda before, last: ((before, -1), (last - 1, -1)),
    "edge": lambda before, last: ((0, 0), (last, 0)),
    "wrap": lambda before, last: ((last + 1 - before, 1), (0, 1)),
}
"""The runs of so many elements ``before`` an axis and of those behind its ``last`` one, by the mode, which Pad joins to it:

    reflect    x[p], ..., x[1]   beside   x[0], ..., x[n - 1]   beside   x[n - 2], ..., x[n - 1 - q]
    edge       x[0], ..., x[0]   beside   x[0], ..., x[n - 1]   beside   x[n - 1], ..., x[n - 1]
    wrap       x[n - p], ..., x[n - 1]   beside   ...   beside   x[0], ..., x[q - 1]
"""


@onnx_op("Pad")
def pad(call: OnnxCall) -> Results:
    """By known amounts, of which those below 0 cut first; these and a constant are attributes before opset 11."""
    x = call.operands[0]
    amounts = call.attribute("pads") if call.opset < 11 else call.ints(1)
    axes = call.ints(3) if call.has(3) else tuple(range(len(shape_of(x))))
    if amounts is None or axes is None:
        return Declined("the amounts are computed at run time")
    ends = [(0, 0)] * len(shape_of(x))
    for axis, before, after in zip(axes, amounts[: len(axes)], amounts[len(axes) :], strict=True):
        ends[axis] = before, after
    if min(amounts, default=0) < 0:
        begin = [max(-before, 0) for before, _ in ends]
        end = [extent - max(-after, 0) for extent, (_, after) in zip(shape_of(x), ends, strict=True)]
        x = ops.strided_slice(x, begin, end, [1] * len(ends))
        ends = [(max(before, 0), max(after, 0)) for before, after in ends]
    mode = call.attribute("mode", "constant")
    return _filled(call, x, ends) if mode == "constant" else _continued(call, x, ends, mode)


def _filled(call: OnnxCall, x: Operand, ends: Sequence[tuple[int, int]]) -> Results:
    value = call.array(2) if call.has(2) else np.asarray(call.attribute("value", 0.0))
    if value is None:
        return Declined("the padding value is computed at run time")
    return ops.pad(x, tuple(ends), value=value.item()) if any(map(any, ends)) else x


def _continued(call: OnnxCall, x: Operand, ends: Sequence[tuple[int, int]], mode: str) -> Results:
    for axis, counts in enumerate(ends):
        extent = shape_of(x)[axis]
        reach = 0 if mode == "edge" else max(counts) + (mode == "reflect")
        if any(counts) and isinstance(extent, int) and extent < max(reach, 1):
            return Declined(f"{max(counts)} elements around {extent} are more than there are")
        runs = zip(RUNS[mode](counts[0], extent - 1), counts, strict=True)
        around = [[run_of(call, x, axis, *run, count)] if count else [] for run, count in runs]
        if any(around):
            x = ops.concat([*around[0], x, *around[1]], axis=axis)
    return x


PLACED_BY_SCALE = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")
"""Ways to place pixels in which those of an image as large lie where they lay."""


@onnx_op("Resize")
def resize(call: OnnxCall) -> Results:
    """What keeps its sizes; others are resized by onnxruntime, or with channels last by kernels."""
    x, scales = call.operands[0], call.array(2) if call.opset >= 11 else None
    axes = call.attribute("axes", range(len(shape_of(x))))
    kept = tuple(shape_of(x)[axis] for axis in axes)
    is_kept = call.dims(3) == kept if call.has(3) else scales is not None and bool(np.all(scales == 1))
    if not is_kept or call.attribute("coordinate_transformation_mode", "half_pixel") not in PLACED_BY_SCALE:
        return Declined("pixels are moved")
    return x


@onnx_op("Shape")
def shape(call: OnnxCall) -> Results:
    """Known when the operand's shape is static; else known as soon as the inputs are there."""
    own = shape_of(call.operands[0])
    start, end, _ = slice(call.attribute("start", 0), call.attribute("end")).indices(len(own))
    known = static(own[start:end])
    if known is not None:
        return np.asarray(known, np.int64)
    whole = ops.shape_of(call.tensor(0))
    return whole if (start, end) == (0, len(own)) else whole[start:end]


@onnx_op("Size")
def size(call: OnnxCall) -> Results:
    """Known when the operand's shape is static; else known as soon as the inputs are there."""
    count = product(shape_of(call.operands[0]))
    return call.extent(count)


MOST_FILLED = 1 << 18
"""Elements of a constant that is one number everywhere. More are filled in each run, by what reads them where it can."""


@onnx_op("ConstantOfShape")
def constant_of_shape(call: OnnxCall) -> Results:
    """A tensor filled with one value."""
    dims, value = call.dims(0), np.asarray(call.attribute("value", np.zeros(1, np.float32))).reshape(())
    if dims is None:
        return RUN_TIME_SHAPE
    extents = static(dims)
    if extents is None and not all(call.derive.is_nonnegative(dim - 1) for dim in dims):
        return OnHost(dims, "the shape is symbolic", dtype=value.dtype.name)
    if extents is None or prod(extents) > MOST_FILLED:
        return ops.broadcast_to(call.constant(value), dims)
    return np.full(extents, value)


@onnx_op("Constant")
def constant(call: OnnxCall) -> Results:
    """A tensor, or a number or numbers in attributes of their own."""
    for name, of in (
        ("value", None),
        ("value_float", "float32"),
        ("value_floats", "float32"),
        ("value_int", "int64"),
        ("value_ints", "int64"),
    ):
        if name in call.attributes:
            return np.asarray(call.attributes[name], of)
    return Declined("a constant of text or sparse data")
