"""Assign: an input of the kernel takes a value."""

from __future__ import annotations

from kernelgen.errors import UnsupportedError
from kernelgen.nest.nodes import Space, Store
from kernelgen.poly.lower.builder import ALGEBRA, Builder
from kernelgen.poly.lower.lowering import Lowering, relate_broadcast
from kernelgen.poly.model.scop import Statement
from kernelgen.tensor.graph import Node, Value


def _assign(builder: Builder, node: Node, name: str) -> None:
    """The destination is written after everything else has read it; the result is the value."""
    destination = node.args[0]
    target = builder.source(destination)
    if target.space is not Space.INOUT:
        raise UnsupportedError("defective-input", f"{node.op.name}: {destination.name!r} is not an input of the kernel")
    fresh = _standing_for(builder, destination, node.args[1], f"{name}_value")
    points = builder.points(destination)
    builder.assigned.pop(destination, None)  # an earlier value is not seen any more
    if not points.is_empty:
        value = ALGEBRA.cast(builder.read(fresh, points), target.dtype)
        store = Store(target, points.index, value)
        builder.assigned[destination] = Statement(name, points.iterators, (store,))
    builder.renamed[node.out] = fresh


def _standing_for(builder: Builder, tensor: Value, source: Value, name: str) -> Value:
    """The source itself, or a copy as the tensor that it stands for where it differs or its buffer is updated too."""
    found = builder.resolve(source)
    updated = found.constant is None and builder.source(found).space is Space.INOUT
    if not updated and (found.shape, found.dtype) == (tensor.shape, tensor.dtype):
        return found
    copy = builder.axes.temporary(name, tensor.shape, tensor.dtype, builder.axes.of(tensor))
    points = builder.points(copy)
    builder.define(copy, points, builder.read(source, points), name)
    return copy


ASSIGN = Lowering(relate_broadcast, _assign)
