"""Reshapes and transposes: copies here, which grouping removes."""

from __future__ import annotations

from kernelgen.composite.description import OpDesc
from kernelgen.nest.nodes import Load
from kernelgen.poly.lower.builder import Builder
from kernelgen.poly.lower.lowering import Lowering
from kernelgen.poly.lower.points import Place, unflatten
from kernelgen.poly.model.factored_axes import TensorAxes


def permutation(op: OpDesc) -> tuple[int, ...]:
    """The operand's dim for each dim of a transposed result; reversed when not given."""
    rank = len(op.inputs[0].shape)
    return tuple(p % rank for p in op.attrs.ints("perm", tuple(reversed(range(rank)))))


def _relate_reshape(axes: TensorAxes, op: OpDesc) -> None:
    axes.reshapes.append((op.inputs[0], op.output))


def _reshape(builder: Builder, op: OpDesc, name: str) -> None:
    """The identity on leaf axes, or ``out[i] = in[unflatten(flatten(i))]`` where the axes do not line up."""
    source, result = builder.resolve(op.inputs[0]), op.output
    points = builder.points(result)
    if builder.literal(source) is not None:
        builder.define(result, points, builder.read(source, points), name)
        return
    index = points.index
    if (op.inputs[0].name, result.name) in builder.axes.opaque:
        index = unflatten(points.number, builder.source(source).shape)
    builder.define(result, points, Load(builder.source(source), index), name)


def _relate_transpose(axes: TensorAxes, op: OpDesc) -> None:
    source = axes.of(op.inputs[0])
    axes.pair([source[d] for d in permutation(op)], axes.of(op.output), op)


def _transpose(builder: Builder, op: OpDesc, name: str) -> None:
    """``out[i_0, ...] = in[...]`` where dim d of the result is dim perm[d] of the operand."""
    points = builder.points(op.output)
    groups: dict[int, Place] = dict(zip(permutation(op), points.groups, strict=True))
    builder.define(op.output, points, builder.at(op.inputs[0], [groups[d] for d in range(len(groups))]), name)


RESHAPE = Lowering(_relate_reshape, _reshape)
TRANSPOSE = Lowering(_relate_transpose, _transpose)
