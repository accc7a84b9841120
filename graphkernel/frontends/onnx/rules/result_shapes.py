"""Shapes of results where ONNX's own inference gives up: over symbols, and with amounts that shape arithmetic says.

A rule gives one shape for each result, with None for an extent that it does not know. ``DependsOnDataError`` and what a
missing operand raises mean that no extent is known, but perhaps the rank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np

from graphkernel.frontends.onnx.rules.base import OnnxCall, shape_of
from graphkernel.frontends.onnx.rules.windows import convolved, pooled, transposed
from graphkernel.frontends.onnx.types.derived_extents import DependsOnDataError
from graphkernel.frontends.onnx.types.types import PartialShape
from kernelgen.tensor.types import Dim, Shape, product

Shapes = Sequence[PartialShape]
EXACT_SCALE = 64
"""Scales whose denominator is at most this give the same extent in float32 as in rationals, for every extent there is."""


def certain_shapes(call: OnnxCall) -> Shapes:
    """The shapes that onnxruntime gives where ONNX's inference says otherwise."""
    return _found(ONNXRUNTIME_SHAPES.get(call.op_type), call)


def known_shapes(call: OnnxCall) -> Shapes:
    """The shapes of the node's results, as far as they follow from what is known; none where there is no rule."""
    return _found(SHAPES.get(call.op_type), call) or _found(RANKS.get(call.op_type), call)


def _found(rule: Callable[[OnnxCall], Shapes] | None, call: OnnxCall) -> Shapes:
    try:
        return () if rule is None else rule(call)
    except (
        DependsOnDataError,
        TypeError,
        ValueError,
        IndexError,
        ArithmeticError,
    ):  # an operand is not known, or not fit
        return ()


def _known_dims(call: OnnxCall, position: int) -> Shape:
    dims = call.dims(position)
    if dims is None:
        raise DependsOnDataError("computed at run time")
    return dims


def _broadcast(call: OnnxCall) -> Shapes:
    return (call.derive.shape(map(shape_of, call.operands)),)


def _expand(call: OnnxCall) -> Shapes:
    return (call.derive.shape((shape_of(call.operands[0]), _known_dims(call, 1))),)


def _product(call: OnnxCall) -> Shapes:
    a, b = map(shape_of, call.operands[:2])
    if min(len(a), len(b)) < 2:
        raise DependsOnDataError("vectors")
    call.derive.must_equal(a[-1], b[-2])
    return ((*call.derive.shape((a[:-2], b[:-2])), a[-2], b[-1]),)


def _reshape(call: OnnxCall) -> Shapes:
    have, target = shape_of(call.operands[0]), _known_dims(call, 1)
    keeps_zero = bool(call.attribute("allowzero", 0))
    dims = [have[i] if d == 0 and not keeps_zero else d for i, d in enumerate(target)]
    if -1 in dims:
        rest = product(dim for dim in dims if dim != -1)
        dims[dims.index(-1)] = call.derive.floor_div(product(have), rest)
    return (tuple(dims),)


def _concat(call: OnnxCall) -> Shapes:
    shapes = [shape_of(x) for x in call.operands]
    axis = call.attribute("axis", 1) % len(shapes[0])
    for shape in shapes[1:]:
        for place in set(range(len(shape))) - {axis}:
            call.derive.must_equal(shapes[0][place], shape[place])
    total = sum((shape[axis] for shape in shapes[1:]), shapes[0][axis])
    return ((*shapes[0][:axis], total, *shapes[0][axis + 1 :]),)


def _split(call: OnnxCall) -> Shapes:
    shape, count = shape_of(call.operands[0]), call.listed
    axis = call.attribute("axis", 0) % len(shape)
    if call.has(1):
        sizes = _known_dims(call, 1)
    elif "num_outputs" in call.attributes:
        part = call.derive.ceil_div(shape[axis], count)
        sizes = (*((part,) * (count - 1)), shape[axis] - part * (count - 1))
    else:
        sizes = (call.derive.floor_div(shape[axis], count),) * count
    return [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]


def _pad(call: OnnxCall) -> Shapes:
    shape = shape_of(call.operands[0])
    amounts = call.attribute("pads") if call.opset < 11 else _known_dims(call, 1)
    axes = range(len(shape)) if not call.has(3) else [axis % len(shape) for axis in _known_ints(call, 3)]
    dims = list(shape)
    for axis, before, after in zip(axes, amounts[: len(axes)], amounts[len(axes) :], strict=True):
        dims[axis] = dims[axis] + before + after
    return (tuple(dims),)


def _known_ints(call: OnnxCall, position: int) -> tuple[int, ...]:
    found = call.ints(position)
    if found is None:
        raise DependsOnDataError("computed at run time")
    return found


def _tile(call: OnnxCall) -> Shapes:
    return (tuple(n * times for n, times in zip(shape_of(call.operands[0]), _known_dims(call, 1), strict=True)),)


def _resize(call: OnnxCall) -> Shapes:
    """By sizes or scales, which stand in other places in older opsets."""
    shape = shape_of(call.operands[0])
    if call.attribute("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise DependsOnDataError("the sizes are bounds")
    axes = [axis % len(shape) for axis in call.attribute("axes", range(len(shape)))]
    dims = list(shape)
    if call.has(3):
        for axis, size in zip(axes, _known_dims(call, 3), strict=True):
            dims[axis] = size
        return (tuple(dims),)
    for axis, scale in zip(axes, _scales(call), strict=True):
        dims[axis] = _scaled(call, dims[axis], float(scale))
    return (tuple(dims),)


def _scales(call: OnnxCall) -> np.ndarray:
    scales = call.attributes.get("scales", call.array(1 if call.opset < 11 else 2))
    if scales is None:
        raise DependsOnDataError("computed at run time")
    return np.asarray(scales, np.float32)


def _scaled(call: OnnxCall, extent: Dim, scale: float) -> Dim:
    exact = Fraction(scale)
    if isinstance(extent, int):
        return int(np.float32(extent) * np.float32(scale))
    if exact.denominator > EXACT_SCALE:
        raise DependsOnDataError("the product is rounded")
    return call.derive.floor_div(extent * exact.numerator, exact.denominator)


def _top_k(call: OnnxCall) -> Shapes:
    shape = list(shape_of(call.operands[0]))
    shape[call.attribute("axis", -1)] = call.attribute("k") if call.opset < 10 else _known_dims(call, 1)[0]
    return (tuple(shape), tuple(shape))


def _one_hot(call: OnnxCall) -> Shapes:
    indices = shape_of(call.operands[0])
    axis = call.attribute("axis", -1) % (len(indices) + 1)
    return ((*indices[:axis], *_known_dims(call, 1), *indices[axis:]),)


def _range(call: OnnxCall) -> Shapes:
    (start,), (limit,), (delta,) = (_known_dims(call, position) for position in range(3))
    if not isinstance(delta, int):
        raise DependsOnDataError("the step is a symbol")
    room = limit - start if delta > 0 else start - limit
    return ((call.derive.greatest(call.derive.ceil_div(room, abs(delta)), 0),),)


def _depth_to_space(call: OnnxCall) -> Shapes:
    n, channels, *space = shape_of(call.operands[0])
    size = call.attribute("blocksize")
    return ((n, call.derive.floor_div(channels, size**2), *(extent * size for extent in space)),)


def _space_to_depth(call: OnnxCall) -> Shapes:
    n, channels, *space = shape_of(call.operands[0])
    size = call.attribute("blocksize")
    return ((n, channels * size**2, *(call.derive.floor_div(extent, size) for extent in space)),)


def _center_crop_pad(call: OnnxCall) -> Shapes:
    shape = list(shape_of(call.operands[0]))
    axes = call.attribute("axes", tuple(range(len(shape))))
    for axis, size in zip(axes, _known_dims(call, 1), strict=True):
        shape[axis] = size
    return (tuple(shape),)


def _filled(call: OnnxCall) -> Shapes:
    return (_known_dims(call, 0),)


def _pool(call: OnnxCall) -> Shapes:
    return (pooled(call),) * 2


def _short_time_fourier(call: OnnxCall) -> Shapes:
    """ONNX's inference forgets that half of the spectrum follows from the other half."""
    signal, (step,) = shape_of(call.operands[0]), _known_dims(call, 1)
    (length,) = _known_dims(call, 3) if call.has(3) else shape_of(call.operands[2])
    bins = call.derive.floor_div(length, 2) + 1 if call.attribute("onesided", 1) else length
    return ((signal[0], call.derive.floor_div(signal[1] - length, step) + 1, bins, 2),)


def _same(call: OnnxCall) -> Shapes:
    return (shape_of(call.operands[0]),) * max(call.listed, 1)


def _targets(call: OnnxCall) -> Shapes:
    """A number of results for each row of a table."""
    rows, _ = shape_of(call.operands[0])
    return ((rows, call.attribute("n_targets", 1)),)


def _classes(call: OnnxCall) -> Shapes:
    """A class for each row of a table, and a score for each class that is known."""
    rows, _ = shape_of(call.operands[0])
    labels = call.attribute("classlabels_int64s") or call.attribute("classlabels_ints") or ()
    columns = len(labels) if call.op_type == TREES and len(labels) > 1 else None
    return (rows,), (rows, columns)


def _of_rank(rank: int) -> PartialShape:
    return (None,) * rank


def _rank_of(call: OnnxCall) -> int:
    return len(shape_of(call.operands[0]))


def _length_of(call: OnnxCall, position: int) -> int:
    """How many numbers an operand holds that is computed at run time."""
    (length,) = shape_of(call.operands[position])
    if not isinstance(length, int):
        raise DependsOnDataError("how many there are is computed at run time")
    return length


def _reduced_rank(call: OnnxCall) -> Shapes:
    return (_of_rank(_rank_of(call) - (0 if call.attribute("keepdims", 1) else _length_of(call, 1))),)


def _parts(call: OnnxCall) -> Shapes:
    """Parts of a length that is computed at run time."""
    shape = shape_of(call.operands[0])
    axis = call.attribute("axis", 0) % len(shape)
    return ((*shape[:axis], None, *shape[axis + 1 :]),) * call.listed


def _cut(call: OnnxCall) -> Shapes:
    """Axes that are cut at places which are computed at run time; the others keep their extents."""
    shape = shape_of(call.operands[0])
    axes = call.attribute("axes") or (_known_ints(call, 3) if call.has(3) else range(_length_of(call, 1)))
    cut = {axis % len(shape) for axis in axes}
    return (tuple(None if axis in cut else extent for axis, extent in enumerate(shape)),)


REDUCTIONS = (
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSumSquare", "ReduceL1", "ReduceL2",
    "ReduceLogSum", "ReduceLogSumExp",
)  # fmt: skip
SAME_RANK = ("Tile", "Pad", "Resize", "Upsample", "CenterCropPad")

RANKS: Mapping[str, Callable[[OnnxCall], Shapes]] = {
    **dict.fromkeys(REDUCTIONS, _reduced_rank),
    **dict.fromkeys(SAME_RANK, lambda call: (_of_rank(_rank_of(call)),)),
    "Reshape": lambda call: (_of_rank(_length_of(call, 1)),),
    "Expand": lambda call: (_of_rank(max(_rank_of(call), _length_of(call, 1))),),
    "ConstantOfShape": lambda call: (_of_rank(_length_of(call, 0)),),
    "Unsqueeze": lambda call: (_of_rank(_rank_of(call) + _length_of(call, 1)),),
    "Squeeze": lambda call: (_of_rank(_rank_of(call) - _length_of(call, 1)),),
    "Range": lambda call: (_of_rank(1),),
    "OneHot": lambda call: (_of_rank(_rank_of(call) + 1),),
    "Split": _parts,
    "Slice": _cut,
}

BROADCASTING = (
    "Add", "Sub", "Mul", "Div", "Mod", "Pow", "And", "Or", "Xor", "Equal", "Less", "LessOrEqual", "Greater",
    "GreaterOrEqual", "Max", "Min", "Sum", "Mean", "Where", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift",
)  # fmt: skip

ONNXRUNTIME_SHAPES: Mapping[str, Callable[[OnnxCall], Shapes]] = {
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), _pool),
    "STFT": _short_time_fourier,
}

TREES = "TreeEnsembleClassifier"

SHAPES: Mapping[str, Callable[[OnnxCall], Shapes]] = {
    **dict.fromkeys((TREES, "SVMClassifier", "LinearClassifier"), _classes),
    **dict.fromkeys(("TreeEnsembleRegressor", "SVMRegressor"), _targets),
    **dict.fromkeys(BROADCASTING, _broadcast),
    **dict.fromkeys(("MatMul", "MatMulInteger"), _product),
    "Conv": lambda call: (convolved(call),),
    "ConvInteger": lambda call: (convolved(call),),
    "QLinearConv": lambda call: (convolved(call, weight=3),),
    "ConvTranspose": lambda call: (transposed(call),),
    "Expand": _expand, "Reshape": _reshape, "Concat": _concat, "Split": _split, "Pad": _pad, "Tile": _tile,
    "Resize": _resize, "Upsample": _resize, "TopK": _top_k, "OneHot": _one_hot, "Range": _range,
    "DepthToSpace": _depth_to_space, "SpaceToDepth": _space_to_depth, "CenterCropPad": _center_crop_pad,
    "ConstantOfShape": _filled, "GroupNormalization": _same, "InstanceNormalization": _same,
}  # fmt: skip
