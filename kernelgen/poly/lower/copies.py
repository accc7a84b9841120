"""Reshapes and transposes: copies here, which grouping removes."""

from __future__ import annotations

from collections.abc import Sequence

from kernelgen.nest.nodes import Index, Load, Var
from kernelgen.poly.lower.builder import Builder
from kernelgen.poly.lower.lowering import Lowering
from kernelgen.poly.lower.points import Place, Points, flatten, unflatten
from kernelgen.poly.model.axes import Axis
from kernelgen.poly.model.factored_axes import TensorAxes
from kernelgen.tensor.dims import Dim, product
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operators.pieces import CONCAT


def permutation(node: Node) -> tuple[int, ...]:
    """The operand's dim for each dim of a transposed result; reversed when not given."""
    rank = len(node.args[0].shape)
    return tuple(p % rank for p in node.attrs.ints("perm", tuple(reversed(range(rank)))))


def _relate_reshape(axes: TensorAxes, node: Node) -> None:
    axes.reshapes.append((node.args[0], node.out))


def _reshape(builder: Builder, node: Node, name: str) -> None:
    """The identity on leaf axes. Where the axes do not line up ``out[i, j] = in[s i + j]`` if the result's are those of the
    source, some of them split, and else ``out[i] = in[unflatten(flatten(i))]``.

    What is only concatenated next is the copy of its source instead, where it joins axes.
    """
    source, result = builder.resolve(node.args[0]), node.out
    points = builder.points(result)
    if builder.literal(source) is not None:
        builder.define(result, points, builder.read(source, points), name)
        return
    index = points.index
    if (node.args[0], result) in builder.axes.opaque:
        inside = builder.points(source)
        there = _joined(inside, builder.axes.groups(result)) if _is_a_part(builder, result) else None
        if there is not None:
            builder.store(builder.target(result), inside, there, builder.read(source, inside), name)
            return
        split = _joined(points, builder.axes.groups(source))
        index = split if split is not None else unflatten(points.number, builder.source(source).shape)
    builder.define(result, points, Load(builder.source(source), index), name)


def _is_a_part(builder: Builder, result: Value) -> bool:
    """Whether nothing but concatenations reads a result, which copy it wherever it is."""
    return result not in builder.outputs and all(
        node.op is CONCAT for node in builder.desc.graph.operators if result in node.args
    )


def _joined(points: Points, groups: Sequence[Sequence[Axis]]) -> tuple[Index, ...] | None:
    """Where each of the ``points`` is among the axes of ``groups``, if these are those of the points, some of them joined:
    ``[s i + j, k]`` of ``[i, j, k]``.
    """
    iterators = iter(points.iterators)
    index: list[Index] = []
    for axis in (axis for group in groups for axis in group):
        places: list[tuple[Index, Dim]] = []
        while product([extent for _, extent in places]) != axis.extent:
            following = next(iterators, None)
            if following is None:
                return None
            places.append((Var(following.name), following.extent))
        index.append(flatten(places))
    return tuple(index) if next(iterators, None) is None else None


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
