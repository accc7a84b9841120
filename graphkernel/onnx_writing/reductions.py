"""Reductions, counts and running sums as ONNX nodes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from graphkernel.onnx_writing.writer import Write, Writer, cast, reduce, scalar
from graphkernel.ops.composite.normalize import REDUCE_MEAN
from kernelgen.tensor.graph import Node
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.reduce import (
    ARGMAX,
    ARGMIN,
    REDUCE_ALL,
    REDUCE_ANY,
    REDUCE_MAX,
    REDUCE_MIN,
    REDUCE_PROD,
    REDUCE_SUM,
)
from kernelgen.tensor.operators.scan import CUM_SUM
from kernelgen.tensor.operators.status import ELEM_ANY


def _reduce(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    return reduce(writer, node.op.onnx, x[0], _axes(node), _keepdims(node), result)


def _axes(node: Node) -> tuple[int, ...]:
    return node.attrs.ints("axis", ()) or tuple(range(node.args[0].type.rank))


def _keepdims(node: Node) -> int:
    return int(node.attrs.bool("keep_dims", False))


def _arg(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    name = "ArgMax" if node.op is ARGMAX else "ArgMin"
    found = writer.emit(name, x[0], axis=node.attrs.int("axis"), keepdims=0)
    return cast(writer, found, node.out.type.dtype, result)


def _logical(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    """All and any of truth values: none of the opposites, and some."""
    is_all = node.op is REDUCE_ALL
    number = cast(writer, writer.emit("Not", x[0]) if is_all else x[0], "int32")
    found = cast(
        writer, reduce(writer, "ReduceSum", number, _axes(node), _keepdims(node)), "bool", "" if is_all else result
    )
    return writer.emit("Not", found, result=result) if is_all else found


def _cum_sum(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    flags = {name: int(node.attrs.bool(name, False)) for name in ("exclusive", "reverse")}
    axis = writer.constant(np.asarray(node.attrs.int("axis"), np.int64))
    return writer.emit("CumSum", x[0], axis, result=result, **flags)


def _elem_any(writer: Writer, node: Node, x: tuple[str, ...], result: str) -> object:
    of = node.args[0].type.dtype
    is_above = x[0] if of.name == "bool" else writer.emit("Greater", x[0], scalar(writer, of, 0))
    flat = writer.emit("Reshape", cast(writer, is_above, "int32"), writer.ints((-1,)))
    number = writer.emit("ReduceSum", flat, writer.ints((0,)), keepdims=1)
    return cast(writer, cast(writer, number, "bool"), node.out.type.dtype, result)


WRITERS: Mapping[Operator, Write] = {
    REDUCE_SUM: _reduce, REDUCE_MEAN: _reduce, REDUCE_MAX: _reduce, REDUCE_MIN: _reduce, REDUCE_PROD: _reduce,
}  # fmt: skip
WHOLE_MODELS_ONLY: Mapping[Operator, Write] = {
    ARGMAX: _arg, ARGMIN: _arg, REDUCE_ALL: _logical, REDUCE_ANY: _logical, CUM_SUM: _cum_sum, ELEM_ANY: _elem_any,
}  # fmt: skip
