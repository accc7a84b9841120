"""Further operators of ours as ONNX nodes: those that host regions leave to kernels and to numpy.

Regions take only what onnxruntime computes fast and safely. A model that goes out has to hold all of a graph, so a form
here may guard what ONNX leaves open: dividing integers by zero, the sign of a remainder, NaN where a value is rounded.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from graphkernel.runtime.onnxruntime.node_writer import Unwritable, Write, Writer, element_type
from kernelgen.tensor.graph import Node
from kernelgen.tensor.types import Category, DType, dtype

SAME: Mapping[str, str] = {
    "ACos": "Acos", "Asin": "Asin", "Atan": "Atan", "Asinh": "Asinh", "Acosh": "Acosh", "Atanh": "Atanh",
    "Sinh": "Sinh", "Cosh": "Cosh", "LogicalXor": "Xor", "Shape": "Shape", "IdentityMath": "Identity",
    "StopGradient": "Identity",
}  # fmt: skip
"""Operators whose ONNX counterpart takes the same operands."""

MOST_FACTORS = 64  # of a power of integers that is written as products


def _scalar(writer: Writer, of: DType, value: float) -> str:
    return writer.constant(np.asarray(value).astype(of.numpy))


def _cast(writer: Writer, x: str, of: DType | str, result: str = "") -> str:
    return writer.emit("Cast", x, to=element_type(dtype(of) if isinstance(of, str) else of), result=result)


def _is_unsigned(of: DType) -> bool:
    return of.category is Category.UINT


def _not_equal(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit("Not", writer.emit("Equal", *x), result=result)


def _is_inf(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    infinite = _scalar(writer, node.args[0].type.dtype, float("inf"))
    return writer.emit("Equal", writer.emit("Abs", x[0]), infinite, result=result)


def _is_finite(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    infinite = _scalar(writer, node.args[0].type.dtype, float("inf"))
    return writer.emit("Less", writer.emit("Abs", x[0]), infinite, result=result)  # NaN is not less


def _trunc(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return _towards_zero(writer, node.out.type.dtype, x[0], result)


def _towards_zero(writer: Writer, of: DType, x: str, result: str = "") -> str:
    negative = writer.emit("Less", x, _scalar(writer, of, 0))
    return writer.emit("Where", negative, writer.emit("Ceil", x), writer.emit("Floor", x), result=result)


def _expm1(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """exp(x) - 1 = tanh(x / 2) (exp(x) + 1), which keeps all digits near zero."""
    of = node.out.type.dtype
    half = writer.emit("Tanh", writer.emit("Mul", x[0], _scalar(writer, of, 0.5)))
    more = writer.emit("Add", writer.emit("Exp", x[0]), _scalar(writer, of, 1))
    return writer.emit("Mul", half, more, result=result)


def _log1p(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """log(u) x / (u - 1) with u = 1 + x: the error of u is in both, so all digits stay near zero."""
    of = node.out.type.dtype
    one = _scalar(writer, of, 1)
    moved = writer.emit("Add", x[0], one)
    log = writer.emit("Log", moved)
    ratio = writer.emit("Div", x[0], writer.emit("Sub", moved, one))
    near = writer.emit("Where", writer.emit("Equal", moved, one), x[0], writer.emit("Mul", log, ratio))
    is_small = writer.emit("Less", writer.emit("Abs", x[0]), one)
    return writer.emit("Where", is_small, near, log, result=result)


def _erfc(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit("Sub", _scalar(writer, node.out.type.dtype, 1), writer.emit("Erf", x[0]), result=result)


def _atan2(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """The angle of the quotient, and half a turn more on the left, with the sign of y."""
    of = node.out.type.dtype
    y, zero = x[0], _scalar(writer, of, 0)
    is_upright = writer.emit("Equal", x[1], zero)
    unsigned = writer.emit("Where", is_upright, writer.emit("Abs", x[1]), x[1])  # -0 turns no sign
    both = writer.emit("And", writer.emit("Equal", y, zero), is_upright)
    angle = writer.emit("Where", both, y, writer.emit("Atan", writer.emit("Div", y, unsigned)))
    turn = _scalar(writer, of, np.pi)
    half = writer.emit("Where", writer.emit("Less", y, zero), writer.emit("Neg", turn), turn)
    left = writer.emit("Less", x[1], zero)
    return writer.emit("Add", angle, writer.emit("Where", left, half, zero), result=result)


def _div(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """Integers: by 0 it gives 0, and the least number by -1 is left to Neg, since processors trap on both."""
    of = node.out.type.dtype
    if not of.is_integer:
        return writer.emit("Div", *x, result=result)
    if _is_unsigned(of):  # onnxruntime selects no such numbers
        one = _scalar(writer, of, 1)
        quotient = writer.emit("Div", x[0], writer.emit("Max", x[1], one))
        return writer.emit("Mul", quotient, writer.emit("Min", x[1], one), result=result)
    zero, safe = _scalar(writer, of, 0), _safe_divisor(writer, of, x[1])
    by_zero = writer.emit("Equal", x[1], zero)
    quotient = writer.emit("Div", x[0], safe)
    by_minus_one = writer.emit("Equal", x[1], _scalar(writer, of, -1))
    quotient = writer.emit("Where", by_minus_one, writer.emit("Neg", x[0]), quotient)
    return writer.emit("Where", by_zero, zero, quotient, result=result)


def _safe_divisor(writer: Writer, of: DType, y: str) -> str:
    """The divisor of integers, 1 where it is 0 or -1."""
    if _is_unsigned(of):
        return writer.emit("Max", y, _scalar(writer, of, 1))
    risky = writer.emit("Equal", y, _scalar(writer, of, 0))
    risky = writer.emit("Or", risky, writer.emit("Equal", y, _scalar(writer, of, -1)))
    return writer.emit("Where", risky, _scalar(writer, of, 1), y)


def _mod(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    of = node.out.type.dtype
    divisor = _safe_divisor(writer, of, x[1]) if of.is_integer else x[1]
    return writer.emit("Mod", x[0], divisor, result=result, fmod=1)


def _floor_mod(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """The remainder, a divisor more where its sign is not the divisor's."""
    of = node.out.type.dtype
    if _is_unsigned(of):
        return _mod(writer, node, x, result)
    zero = _scalar(writer, of, 0)
    divisor = _safe_divisor(writer, of, x[1]) if of.is_integer else x[1]
    rest = writer.emit("Mod", x[0], divisor, fmod=1)
    return writer.emit(
        "Where", _wrong_sign(writer, rest, x[1], zero), writer.emit("Add", rest, x[1]), rest, result=result
    )


def _wrong_sign(writer: Writer, rest: str, divisor: str, zero: str) -> str:
    differ = writer.emit("Xor", writer.emit("Less", rest, zero), writer.emit("Less", divisor, zero))
    return writer.emit("And", differ, writer.emit("Not", writer.emit("Equal", rest, zero)))


def _floor_div(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    of = node.out.type.dtype
    if not of.is_integer:
        return writer.emit("Floor", writer.emit("Div", *x), result=result)
    if _is_unsigned(of):
        return _div(writer, node, x, result)
    quotient = str(_div(writer, node, x, ""))
    rest = writer.emit("Mod", x[0], _safe_divisor(writer, of, x[1]), fmod=1)
    wrong = _wrong_sign(writer, rest, x[1], _scalar(writer, of, 0))
    less = writer.emit("Sub", quotient, _scalar(writer, of, 1))
    return writer.emit("Where", wrong, less, quotient, result=result)


def _pow(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """Known powers of integers are products, which wrap around; runtimes compute others in floats."""
    exponent = node.args[1].constant
    known = int(exponent.reshape(())) if exponent is not None and exponent.size == 1 else 0
    if not node.out.type.dtype.is_integer or not 1 <= known <= MOST_FACTORS:
        return writer.emit("Pow", *x, result=result)
    factor = product = writer.emit("Expand", x[0], writer.extents(node.out.type.shape))
    for _ in range(known - 1):
        product = writer.emit("Mul", product, factor)
    return writer.emit("Identity", product, result=result)


def _arg(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    name = {"Argmax": "ArgMax", "Argmin": "ArgMin"}[node.op.name]
    found = writer.emit(name, x[0], axis=node.attrs.int("axis"), keepdims=0)
    return _cast(writer, found, node.out.type.dtype, result)


def _logical(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """All and any of truth values: none of the opposites, and some."""
    axes = node.attrs.ints("axis", ()) or tuple(range(node.args[0].type.rank))
    is_all = node.op.name == "ReduceAll"
    number = _cast(writer, writer.emit("Not", x[0]) if is_all else x[0], "int32")
    count = writer.emit("ReduceSum", number, writer.ints(axes), keepdims=int(node.attrs.bool("keep_dims", False)))
    found = _cast(writer, count, "bool", "" if is_all else result)
    return writer.emit("Not", found, result=result) if is_all else found


def _cum_sum(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    flags = {name: int(node.attrs.bool(name, False)) for name in ("exclusive", "reverse")}
    axis = writer.constant(np.asarray(node.attrs.int("axis"), np.int64))
    return writer.emit("CumSum", x[0], axis, result=result, **flags)


def _slice(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    begin, size = node.attrs.dims("begin"), node.attrs.dims("size")
    ends = tuple(first + count for first, count in zip(begin, size, strict=True))
    return writer.emit("Slice", x[0], writer.extents(begin), writer.extents(ends), result=result)


def _unpad(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    starts = writer.ints((0,) * node.out.type.rank)
    return writer.emit("Slice", x[0], starts, writer.extents(node.out.type.shape), result=result)


def _pad(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    rank, of = node.out.type.rank, node.out.type.dtype
    if node.op.name == "PadAkg":
        margins, value = (*node.attrs.ints("head"), *node.attrs.ints("tail")), node.attrs.number("pad_val", 0)
    else:
        pairs = node.attrs.ints("paddings")
        margins, value = (*pairs[::2], *pairs[1::2]), node.attrs.number("value", 0)
    return writer.emit("Pad", x[0], writer.ints(margins), _scalar(writer, of, value), result=result) if rank else (
        writer.emit("Identity", x[0], result=result)
    )  # fmt: skip


def _broadcast_to(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """Runtimes do not expand nothing to no elements."""
    type_ = node.out.type
    if 0 not in type_.shape:
        return writer.emit("Expand", x[0], writer.extents(type_.shape), result=result)
    return _cast(writer, writer.emit("ConstantOfShape", writer.extents(type_.shape)), type_.dtype, result)


def _tile(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    multiples, rank = node.attrs.dims("multiples"), node.args[0].type.rank
    operand = x[0]
    if len(multiples) > rank:
        ones = (1,) * (len(multiples) - rank)
        operand = writer.emit("Reshape", operand, writer.extents((*ones, *node.args[0].type.shape)))
    return writer.emit("Tile", operand, writer.extents(multiples), result=result)


def _fill(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    scalar = writer.emit("Reshape", x[0], writer.ints(()))
    return writer.emit("Expand", scalar, writer.extents(node.out.type.shape), result=result)


def _constant_of_shape(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    value = _scalar(writer, node.out.type.dtype, node.attrs.number("value", 0.0))
    return writer.emit("Expand", value, writer.extents(node.out.type.shape), result=result)


def _extent(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    (dim,) = node.attrs.dims("value")
    scalar = writer.emit("Reshape", writer.extents((dim,)), writer.ints(()))
    return _cast(writer, scalar, node.out.type.dtype, result)


def _one_hot(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """By comparison: to ONNX's own operator a negative index counts from the end."""
    indices = node.args[0].type
    axis = node.attrs.int("axis", -1) % (indices.rank + 1)
    (depth,) = node.attrs.dims("depth")
    if not isinstance(depth, int):
        raise Unwritable(f"a depth of {depth}")
    spread = writer.emit("Unsqueeze", x[0], writer.ints((axis,)))
    places = np.arange(depth).reshape([-1] + [1] * (indices.rank - axis)).astype(indices.dtype.numpy)
    is_there = writer.emit("Equal", spread, writer.constant(places))
    on, off = (writer.emit("Reshape", value, writer.ints(())) for value in x[1:])
    return _where(writer, node.out.type.dtype, is_there, on, off, result)


def _indices(writer: Writer, node: Node, position: int, x: tuple[str, ...]) -> str:
    """Indices as int64, which is all that these operators of ONNX take."""
    own = node.args[position].type.dtype
    return x[position] if own.name == "int64" else _cast(writer, x[position], "int64")


def _gather_nd(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """Indices out of range give 0 to us, and are an error to ONNX. Tuples of no index mean the whole operand."""
    if node.args[1].type.shape[-1] == 0:
        return writer.emit("Expand", x[0], writer.extents(node.out.type.shape), result=result)
    is_inside, safe = _inside(writer, node, x)
    found = writer.emit("GatherND", x[0], safe)
    behind = node.out.type.rank - (node.args[1].type.rank - 1)
    of = node.out.type.dtype
    return _where(writer, of, _spread(writer, is_inside, node, behind), found, _scalar(writer, of, 0), result)


def _scatter_add(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """What has an index out of range adds 0 to the first element, which is nothing."""
    if node.args[1].type.shape[-1] == 0:
        whole = writer.emit("ReduceSum", x[2], writer.ints(tuple(range(node.args[1].type.rank - 1))), keepdims=0)
        return writer.emit("Add", x[0], whole, result=result)
    is_inside, safe = _inside(writer, node, x)
    behind = node.args[2].type.rank - (node.args[1].type.rank - 1)
    of = node.out.type.dtype
    added = writer.emit("Where", _spread(writer, is_inside, node, behind), x[2], _scalar(writer, of, 0))
    if of.name != "float16":
        return writer.emit("ScatterND", x[0], safe, added, result=result, reduction="add")
    wide = [_cast(writer, each, "float32") for each in (x[0], added)]  # onnxruntime adds no half ones there
    return _cast(writer, writer.emit("ScatterND", wide[0], safe, wide[1], reduction="add"), of, result)


def _inside(writer: Writer, node: Node, x: tuple[str, ...]) -> tuple[str, str]:
    """Whether each index tuple is in range, and the indices with 0 in place of those that are not."""
    count = node.args[1].type.shape[-1]
    if not isinstance(count, int):
        raise Unwritable(f"index tuples of {count} elements")
    indices, zero = _indices(writer, node, 1, x), _scalar(writer, dtype("int64"), 0)
    beyond = writer.emit("Less", indices, writer.extents(node.args[0].type.shape[:count]))
    fits = writer.emit("And", beyond, writer.emit("Not", writer.emit("Less", indices, zero)))
    lowest = _least(writer, _cast(writer, fits, "int32"), (-1,), keepdims=0)
    return _cast(writer, lowest, "bool"), writer.emit("Where", fits, indices, zero)


def _spread(writer: Writer, mask: str, node: Node, behind: int) -> str:
    """The mask with as many axes of 1 behind its own."""
    own = node.args[1].type.rank - 1
    return writer.emit("Unsqueeze", mask, writer.ints(tuple(range(own, own + behind)))) if behind else mask


def _least(writer: Writer, x: str, axes: tuple[int, ...], keepdims: int) -> str:
    if writer.opset >= 18:
        return writer.emit("ReduceMin", x, writer.ints(axes), keepdims=keepdims)
    return writer.emit("ReduceMin", x, axes=axes, keepdims=keepdims)


def _select(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return _where(writer, node.out.type.dtype, *x, result=result)


def _where(writer: Writer, of: DType, condition: str, x: str, y: str, result: str = "") -> str:
    """onnxruntime selects no truth values."""
    if of.name != "bool":
        return writer.emit("Where", condition, x, y, result=result)
    otherwise = writer.emit("And", writer.emit("Not", condition), y)
    return writer.emit("Or", writer.emit("And", condition, x), otherwise, result=result)


def _relu(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    of = node.out.type.dtype
    if of.is_integer:
        return writer.emit("Max", x[0], _scalar(writer, of, 0), result=result)
    return writer.emit("Relu", x[0], result=result)


def _add_n(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    if not node.out.type.dtype.is_integer:
        return writer.emit("Sum", *x, result=result)
    total = x[0]
    for operand in x[1:]:
        total = writer.emit("Add", total, operand)
    return writer.emit("Identity", total, result=result)


def _elem_any(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    of = node.args[0].type.dtype
    is_above = x[0] if of.name == "bool" else writer.emit("Greater", x[0], _scalar(writer, of, 0))
    flat = writer.emit("Reshape", _cast(writer, is_above, "int32"), writer.ints((-1,)))
    number = writer.emit("ReduceSum", flat, writer.ints((0,)), keepdims=1)
    return _cast(writer, writer.emit("Cast", number, to=element_type(dtype("bool"))), node.out.type.dtype, result)


def _assign(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """The value; that it is stored is an alias of the graph."""
    return writer.emit("Identity", x[1], result=result)


FORMS: Mapping[str, Write] = {
    "NotEqual": _not_equal, "IsInf": _is_inf, "IsFinite": _is_finite, "Trunc": _trunc, "Expm1": _expm1, "Log1p": _log1p,
    "Erfc": _erfc, "Atan2": _atan2, "Div": _div, "Mod": _mod, "FloorMod": _floor_mod, "FloorDiv": _floor_div, "Pow": _pow,
    "Argmax": _arg, "Argmin": _arg, "ReduceAll": _logical, "ReduceAny": _logical, "CumSum": _cum_sum, "Slice": _slice,
    "UnPadAkg": _unpad, "Pad": _pad, "PadAkg": _pad, "Tile": _tile, "FillV2": _fill,
    "ConstantOfShape": _constant_of_shape, "Extent": _extent, "OneHot": _one_hot, "GatherNd": _gather_nd,
    "TensorScatterAdd": _scatter_add, "Assign": _assign, "Select": _select, "ReLU": _relu, "AddN": _add_n,
    "ElemAny": _elem_any, "BroadcastTo": _broadcast_to,
}  # fmt: skip
