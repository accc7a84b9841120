"""Operators that move, repeat, cut, join or make elements, as ONNX nodes. Symbolic extents are taken from operands."""

from __future__ import annotations

from collections.abc import Mapping

from graphkernel.onnx_writing.writer import Unwritable, Write, Writer, cast, result_names, scalar, taken
from kernelgen.tensor.graph import Node
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.creation import CONSTANT_OF_SHAPE, EXTENT, FILL_V2
from kernelgen.tensor.operators.effects import ASSIGN
from kernelgen.tensor.operators.padding import PAD_AKG, UNPAD_AKG
from kernelgen.tensor.operators.pieces import CONCAT, PAD, SLICE, SPLIT, STRIDED_SLICE
from kernelgen.tensor.operators.shape import BROADCAST_TO, EXPAND_DIMS, FLATTEN, RESHAPE, SQUEEZE, TILE, TRANSPOSE
from kernelgen.tensor.types import Shape, Sym

ALLOWZERO_OPSET = 14
BEFORE_THE_FIRST = -(2**62)  # how ONNX spells the end of a slice that runs backwards through element 0


def _reshape(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """A 0 in the shape means "as in the operand", but for ``allowzero``; beside that there may be no -1."""
    have, want = node.args[0].type.shape, node.out.type.shape
    unknown = sum(isinstance(dim, Sym) for dim in want)
    if unknown <= 1 and 0 not in want:
        shape = writer.ints(tuple(-1 if isinstance(dim, Sym) else dim for dim in want))
        return writer.emit("Reshape", x[0], shape, result=result)
    if writer.opset < ALLOWZERO_OPSET:
        raise Unwritable(f"extents that may be 0 are in opset {ALLOWZERO_OPSET}")
    return writer.emit("Reshape", x[0], _shape_operand(writer, x[0], have, want), result=result, allowzero=1)


def _shape_operand(writer: Writer, x: str, have: Shape, want: Shape) -> str:
    """The shape as a tensor: a constant when it is known, else taken from the operand's shape."""
    if not any(isinstance(dim, Sym) for dim in want):
        return writer.ints(tuple(dim for dim in want if isinstance(dim, int)))
    parts: list[str] = []
    shape = ""
    for dim in want:
        if isinstance(dim, int):
            parts.append(writer.ints((dim,)))
            continue
        shape = shape or writer.emit("Shape", x)
        parts.append(_dim_operand(writer, shape, have, dim))
    return writer.emit("Concat", *parts, axis=0)


def _dim_operand(writer: Writer, shape: str, have: Shape, want: Sym) -> str:
    """One symbolic extent as a vector of one element: a sum of products of the operand's extents."""
    known = {dim.symbols[0]: axis for axis, dim in enumerate(have) if isinstance(dim, Sym) and dim == _symbol(dim)}
    total = ""
    for monomial, coefficient in want.terms:
        factor = writer.ints((coefficient,))
        for name in monomial:
            if name not in known:
                return writer.extent(want)
            factor = writer.emit("Mul", factor, taken(writer, shape, known[name]))
        total = writer.emit("Add", total, factor) if total else factor
    return total


def _symbol(dim: Sym) -> Sym:
    return Sym((((dim.symbols[0],), 1),))


def _transpose(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit(node.op.onnx, x[0], result=result, perm=node.attrs.ints("perm"))


def _concat(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit(node.op.onnx, *x, result=result, axis=node.attrs.int("axis"))


def _broadcast_to(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """Runtimes do not expand nothing to no elements."""
    type_ = node.out.type
    if 0 not in type_.shape:
        return writer.emit("Expand", x[0], writer.extents(type_.shape), result=result)
    return cast(writer, writer.emit("ConstantOfShape", writer.extents(type_.shape)), type_.dtype, result)


def _strided_slice(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    begin, end, strides = node.attrs.dims("begin"), node.attrs.dims("end"), node.attrs.ints("strides")
    cut = [
        axis
        for axis, dim in enumerate(node.args[0].type.shape)
        if (begin[axis], end[axis], strides[axis]) != (0, dim, 1)
    ]
    stops = tuple(BEFORE_THE_FIRST if end[axis] == -1 else end[axis] for axis in cut)
    starts, steps = tuple(begin[axis] for axis in cut), tuple(strides[axis] for axis in cut)
    operands = [writer.extents(starts), writer.extents(stops), writer.ints(tuple(cut)), writer.ints(steps)]
    return writer.emit("Slice", x[0], *operands, result=result)


def _split(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    sizes = writer.ints(node.attrs.ints("size_splits"))
    return writer.append("Split", (x[0], sizes), result_names(result, len(node.types)), axis=node.attrs.int("axis"))


def _slice(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    begin, size = node.attrs.dims("begin"), node.attrs.dims("size")
    ends = tuple(first + count for first, count in zip(begin, size, strict=True))
    return writer.emit("Slice", x[0], writer.extents(begin), writer.extents(ends), result=result)


def _unpad(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    starts = writer.ints((0,) * node.out.type.rank)
    return writer.emit("Slice", x[0], starts, writer.extents(node.out.type.shape), result=result)


def _pad(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    rank, of = node.out.type.rank, node.out.type.dtype
    if node.op is PAD_AKG:
        margins, value = (*node.attrs.ints("head"), *node.attrs.ints("tail")), node.attrs.number("pad_val", 0)
    else:
        pairs = node.attrs.ints("paddings")
        margins, value = (*pairs[::2], *pairs[1::2]), node.attrs.number("value", 0)
    return writer.emit("Pad", x[0], writer.ints(margins), scalar(writer, of, value), result=result) if rank else (
        writer.emit("Identity", x[0], result=result)
    )  # fmt: skip


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
    value = scalar(writer, node.out.type.dtype, node.attrs.number("value", 0.0))
    return writer.emit("Expand", value, writer.extents(node.out.type.shape), result=result)


def _extent(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    (dim,) = node.attrs.dims("value")
    scalar = writer.emit("Reshape", writer.extents((dim,)), writer.ints(()))
    return cast(writer, scalar, node.out.type.dtype, result)


def _of_type(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return cast(writer, x[0], node.out.type.dtype, result)


def _assign(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """The value; that it is stored is an alias of the graph."""
    return writer.emit("Identity", x[1], result=result)


WRITERS: Mapping[Operator, Write] = {
    RESHAPE: _reshape, EXPAND_DIMS: _reshape, SQUEEZE: _reshape, FLATTEN: _reshape, TRANSPOSE: _transpose,
    CONCAT: _concat, BROADCAST_TO: _broadcast_to, STRIDED_SLICE: _strided_slice, SPLIT: _split, PAD: _pad,
    PAD_AKG: _pad, CAST: _of_type,
}  # fmt: skip
WHOLE_MODELS_ONLY: Mapping[Operator, Write] = {
    SLICE: _slice, UNPAD_AKG: _unpad, TILE: _tile, FILL_V2: _fill,
    CONSTANT_OF_SHAPE: _constant_of_shape, EXTENT: _extent, ASSIGN: _assign,
}  # fmt: skip
