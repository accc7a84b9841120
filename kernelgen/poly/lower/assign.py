"""Assign and InplaceAssign: an input of the kernel takes a value."""

from __future__ import annotations

from dataclasses import replace

from kernelgen.composite.description import OpDesc, TensorDesc
from kernelgen.composite.vocabulary import INPLACE_ASSIGN
from kernelgen.errors import UnsupportedError
from kernelgen.nest.nodes import Space, Store
from kernelgen.poly.lower.builder import ALGEBRA, Builder
from kernelgen.poly.lower.lowering import Lowering
from kernelgen.poly.model.factored_axes import TensorAxes
from kernelgen.poly.model.scop import Statement


def _relate(axes: TensorAxes, op: OpDesc) -> None:
    """The result of InplaceAssign stands for operand 2, which need not fit the destination."""
    if op.name == INPLACE_ASSIGN.name:
        axes.broadcast(op, op.inputs[1:2], axes.of(op.inputs[0]))
        axes.broadcast(op, op.inputs[2:], axes.of(op.output))
    else:
        axes.broadcast(op, op.inputs, axes.of(op.output))


def _assign(builder: Builder, op: OpDesc, name: str) -> None:
    """The destination is written after everything else has read it; the result is the named operand's value."""
    destination = op.inputs[0]
    target = builder.buffers.get(destination.name)
    if target is None or target.space is not Space.INOUT:
        raise UnsupportedError("defective-input", f"{op.name}: {destination.name!r} is not an input of the kernel")
    fresh = _standing_for(builder, destination, op.inputs[1], f"{name}_value")
    points = builder.points(destination)
    builder.assigned.pop(destination.name, None)  # an earlier value is not seen any more
    if not points.is_empty:
        value = ALGEBRA.cast(builder.read(fresh, points), target.dtype)
        store = Store(target, points.index, value)
        builder.assigned[destination.name] = Statement(name, points.iterators, (store,))
    result = op.inputs[2] if op.name == INPLACE_ASSIGN.name else fresh
    builder.renamed[op.output.name] = builder.resolve(result)
    builder.renamed[destination.name] = fresh


def _standing_for(builder: Builder, tensor: TensorDesc, source: TensorDesc, name: str) -> TensorDesc:
    """The source itself, or a copy as the tensor that it stands for where it differs or its buffer is updated too."""
    found = builder.resolve(source)
    updated = found.value is None and builder.source(found).space is Space.INOUT
    if not updated and (found.shape, found.dtype) == (tensor.shape, tensor.dtype):
        return found
    copy = replace(tensor, name=name)
    builder.axes.by_name[name] = builder.axes.of(tensor)
    points = builder.points(copy)
    builder.define(copy, points, builder.read(source, points), name)
    return copy


ASSIGN = Lowering(_relate, _assign)
