"""Operators with indices as ONNX nodes. Out of range ONNX fails where ours give 0, so indices are looked at first."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from graphkernel.onnx_writing.writer import Unwritable, Write, Writer, cast, reduce, scalar, where
from graphkernel.ops.library.places import PLACES
from kernelgen.tensor.graph import Node
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.indexing import GATHER, ONE_HOT
from kernelgen.tensor.operators.scatter import GATHER_ND, TENSOR_SCATTER_ADD
from kernelgen.tensor.types import dtype


def _gather(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return writer.emit(node.op.onnx, *x, result=result, axis=node.attrs.int("axis", 0))


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
    return where(writer, node.out.type.dtype, is_there, on, off, result)


def _indices(writer: Writer, node: Node, position: int, x: tuple[str, ...]) -> str:
    """Indices as int64, which is all that these operators of ONNX take."""
    own = node.args[position].type.dtype
    return x[position] if own.name == "int64" else cast(writer, x[position], "int64")


def _gather_nd(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """Indices out of range give 0 to us, and are an error to ONNX. Tuples of no index mean the whole operand."""
    if node.args[1].type.shape[-1] == 0:
        return writer.emit("Expand", x[0], writer.extents(node.out.type.shape), result=result)
    is_inside, safe = _inside(writer, node, x)
    found = writer.emit("GatherND", x[0], safe)
    behind = node.out.type.rank - (node.args[1].type.rank - 1)
    of = node.out.type.dtype
    return where(writer, of, _spread(writer, is_inside, node, behind), found, scalar(writer, of, 0), result)


def _scatter_add(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """What has an index out of range adds 0 to the first element, which is nothing."""
    if node.args[1].type.shape[-1] == 0:
        whole = writer.emit("ReduceSum", x[2], writer.ints(tuple(range(node.args[1].type.rank - 1))), keepdims=0)
        return writer.emit("Add", x[0], whole, result=result)
    is_inside, safe = _inside(writer, node, x)
    behind = node.args[2].type.rank - (node.args[1].type.rank - 1)
    of = node.out.type.dtype
    added = writer.emit("Where", _spread(writer, is_inside, node, behind), x[2], scalar(writer, of, 0))
    if of.name != "float16":
        return writer.emit("ScatterND", x[0], safe, added, result=result, reduction="add")
    wide = [cast(writer, each, "float32") for each in (x[0], added)]  # onnxruntime adds no half ones there
    return cast(writer, writer.emit("ScatterND", wide[0], safe, wide[1], reduction="add"), of, result)


def _inside(writer: Writer, node: Node, x: tuple[str, ...]) -> tuple[str, str]:
    """Whether each index tuple is in range, and the indices with 0 in place of those that are not."""
    count = node.args[1].type.shape[-1]
    if not isinstance(count, int):
        raise Unwritable(f"index tuples of {count} elements")
    indices, zero = _indices(writer, node, 1, x), scalar(writer, dtype("int64"), 0)
    beyond = writer.emit("Less", indices, writer.extents(node.args[0].type.shape[:count]))
    fits = writer.emit("And", beyond, writer.emit("Not", writer.emit("Less", indices, zero)))
    lowest = reduce(writer, "ReduceMin", cast(writer, fits, "int32"), (-1,), 0)
    return cast(writer, lowest, "bool"), writer.emit("Where", fits, indices, zero)


def _spread(writer: Writer, mask: str, node: Node, behind: int) -> str:
    """The mask with as many axes of 1 behind its own."""
    own = node.args[1].type.rank - 1
    return writer.emit("Unsqueeze", mask, writer.ints(tuple(range(own, own + behind)))) if behind else mask


def _places(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """Out of range ONNX's Gather, which reads there, fails as this does."""
    of = node.out.type.dtype
    extent = writer.emit("Reshape", writer.extents(node.attrs.dims("extent")), writer.ints(()))
    behind = writer.emit("Add", x[0], extent if of.name == "int64" else cast(writer, extent, of))
    return writer.emit("Where", writer.emit("Less", x[0], scalar(writer, of, 0)), behind, x[0], result=result)


WRITERS: Mapping[Operator, Write] = {
    GATHER: _gather,
}  # fmt: skip
WHOLE_MODELS_ONLY: Mapping[Operator, Write] = {
    ONE_HOT: _one_hot, PLACES: _places, GATHER_ND: _gather_nd, TENSOR_SCATTER_ADD: _scatter_add,
}  # fmt: skip
