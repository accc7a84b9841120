"""Reshapes and transposes: copies here, which grouping removes."""

from __future__ import annotations

from kernelgen.nest.nodes import Load
from kernelgen.poly.lower.builder import Builder
from kernelgen.poly.lower.lowering import Lowering
from kernelgen.poly.lower.points import Place, unflatten
from kernelgen.poly.model.factored_axes import TensorAxes
from kernelgen.tensor.graph import Node


def permutation(node: Node) -> tuple[int, ...]:
    """The operand's dim for each dim of a transposed result; reversed when not given."""
    rank = len(node.args[0].shape)
    return tuple(p % rank for p in node.attrs.ints("perm", tuple(reversed(range(rank)))))


def _relate_reshape(axes: TensorAxes, node: Node) -> None:
    axes.reshapes.append((node.args[0], node.out))


def _reshape(builder: Builder, node: Node, name: str) -> None:
    """The identity on leaf axes, or ``out[i] = in[unflatten(flatten(i))]`` where the axes do not line up."""
    source, result = builder.resolve(node.args[0]), node.out
    points = builder.points(result)
    if builder.literal(source) is not None:
        builder.define(result, points, builder.read(source, points), name)
        return
    index = points.index
    if (node.args[0], result) in builder.axes.opaque:
        index = unflatten(points.number, builder.source(source).shape)
    builder.define(result, points, Load(builder.source(source), index), name)


def _relate_transpose(axes: TensorAxes, node: Node) -> None:
    source = axes.of(node.args[0])
    axes.pair([source[d] for d in permutation(node)], axes.of(node.out), node)


def _transpose(builder: Builder, node: Node, name: str) -> None:
    """``out[i_0, ...] = in[...]`` where dim d of the result is dim perm[d] of the operand."""
    points = builder.points(node.out)
    groups: dict[int, Place] = dict(zip(permutation(node), points.groups, strict=True))
    builder.define(node.out, points, builder.at(node.args[0], [groups[d] for d in range(len(groups))]), name)


RESHAPE = Lowering(_relate_reshape, _reshape)
TRANSPOSE = Lowering(_relate_transpose, _transpose)
