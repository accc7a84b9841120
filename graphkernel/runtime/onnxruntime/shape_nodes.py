"""Operators that move, repeat, cut or join elements, as ONNX nodes. Symbolic extents are taken from operands at run time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from graphkernel.runtime.onnxruntime.node_writer import Unwritable, Write, Writer, result_names
from kernelgen.tensor.graph import Node
from kernelgen.tensor.operators.families import scalar_of
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
            factor = writer.emit("Mul", factor, writer.emit("Gather", shape, writer.ints((known[name],)), axis=0))
        total = writer.emit("Add", total, factor) if total else factor
    return total


def _symbol(dim: Sym) -> Sym:
    return Sym((((dim.symbols[0],), 1),))


def _transpose(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit("Transpose", x[0], result=result, perm=node.attrs.ints("perm"))


def _concat(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit("Concat", *x, result=result, axis=node.attrs.int("axis"))


def _broadcast_to(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    shape = node.out.type.shape
    if 0 in shape:
        raise Unwritable("onnxruntime expands nothing to no elements")
    return writer.emit("Expand", x[0], writer.extents(shape), result=result)


def _slice(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
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


def _pad(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    amounts, of = node.attrs.ints("paddings"), node.out.type.dtype
    value = np.asarray(scalar_of(node.attrs, "value", of, 0)).astype(of.numpy)
    return writer.emit(
        "Pad", x[0], writer.ints((*amounts[0::2], *amounts[1::2])), writer.constant(value), result=result
    )


SHAPE_WRITERS: Mapping[str, Write] = {
    **dict.fromkeys(("Reshape", "ExpandDims", "Squeeze", "Flatten"), _reshape),
    "Transpose": _transpose,
    "Concat": _concat,
    "BroadcastTo": _broadcast_to,
    "StridedSlice": _slice,
    "Split": _split,
    "Pad": _pad,
}
