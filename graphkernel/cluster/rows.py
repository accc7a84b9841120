"""Kernels that compute each row by itself: which of their values have rows, and along which axis.

::

    Fused(x: f32[512, 64], w: f32[64, 256], b: f32[256]) { MatMul; Add; ReLU }     x and the results: axis 0; w and b: none

Such a kernel can be called for some rows at a time, while other rows are still on their way from other ranks, or are on their
way to them already.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphkernel.cluster.own_products import PRODUCTS
from graphkernel.communication.chunks import axis_of_rows
from kernelgen.tensor.graph import Graph, Node, Value
from kernelgen.tensor.operator import Kind

Axes = Mapping[Value, int]


def row_axes(body: Graph) -> Axes:
    """The axis of rows of each value of a ``body`` that has one: nothing where a row of the results needs other rows.

    Extents are known, and the results have the same rows.
    """
    shape, made = body.outputs[0].type.shape, set(body.operators)
    axis = axis_of_rows(shape)
    alike = all(out.node in made and out.type.shape[: axis + 1] == shape[: axis + 1] for out in body.outputs)
    is_known = not any(of.symbols for node in body.nodes for of in node.types)
    if not alike or not is_known or body.aliases or axis >= len(shape) - 1 or shape[axis] in (0, 1):
        return {}
    axes = dict.fromkeys(body.outputs, axis)
    for node in reversed(body.operators):
        if any(out in axes for out in node.outs):
            axes.update(_read_by_rows(node, axes[node.outs[0]]) if node.outs[0] in axes else {})
    return axes if all(_holds(node, axes) for node in body.operators) else {}


def _holds(node: Node, axes: Axes) -> bool:
    """Whether a row of an operator's results is made of that row of the operands, or it has nothing to do with rows."""
    read = {arg: axes[arg] for arg in node.args if arg in axes}
    written = [out for out in node.outs if out in axes]
    if not written:
        return not read
    return len(node.outs) == 1 and bool(read) and read == _read_by_rows(node, axes[node.out])


def _read_by_rows(node: Node, axis: int) -> Axes:
    """The operands of which the same rows are read as are written along an ``axis``, each with its axis."""
    shape = node.types[0].shape
    if node.op.kind is Kind.ELEMWISE:
        places = ((arg, axis - len(shape) + arg.type.rank) for arg in node.args)
        return {arg: place for arg, place in places if place >= 0 and arg.type.shape[place] == shape[axis]}
    x = node.args[0] if node.args else None
    if x is None or x.type.rank != len(shape) or x.type.shape[: axis + 1] != shape[: axis + 1]:
        return {}
    is_reduction = node.op.kind is Kind.REDUCE and len(node.args) == 1
    return {x: axis} if is_reduction or _is_of_rows(node, axis) else {}


def _is_of_rows(node: Node, axis: int) -> bool:
    """Whether it is a product of rows with one matrix."""
    is_plain = node.op in PRODUCTS and len(node.args) == 2 and not node.attrs.bool("transpose_a", False)
    return is_plain and node.args[1].type.rank == 2 and node.args[1] != node.args[0] and axis < node.types[0].rank - 1
