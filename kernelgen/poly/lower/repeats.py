"""Tile: a repeated dim is a dim of repetitions around the dim itself.

    y: [m s] = Tile(x: [s])      ->      y[r, i] = x[i] over the leaf axes r < m, i < s of the result's dim

A Reshape of a broadcast ``[m, s]`` is the same, and the result's dim is split as for one. Where another operator addresses
that dim by number, it stays whole: ``y[j] = x[j mod s]``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernelgen.composite.description import OpDesc, TensorDesc
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import Num
from kernelgen.poly.lower.builder import Builder
from kernelgen.poly.lower.lowering import Lowering
from kernelgen.poly.lower.points import Place, computed_place
from kernelgen.poly.model.axes import Axis
from kernelgen.poly.model.factored_axes import TensorAxes
from kernelgen.tensor.dims import Dim, Sym


@dataclass(frozen=True)
class _Repeated:
    """A dim that is repeated: its place in the operand and in the result, and both views of the result's dim."""

    source: int
    result: int
    parts: TensorDesc
    whole: TensorDesc


def _repeated(op: OpDesc) -> Iterator[_Repeated]:
    """The dims of the operand that the result has more than once; one of extent 1 is broadcast."""
    first = len(op.output.shape) - len(op.inputs[0].shape)
    counts = op.attrs.dims("multiples")
    for d, dim in enumerate(op.inputs[0].shape):
        extent = op.output.shape[first + d]
        if dim not in (1, extent):
            shape: tuple[Dim, ...] = (counts[len(counts) - len(op.inputs[0].shape) + d], dim)
            parts, whole = (f"{op.output.name}_{word}{d}" for word in ("parts", "whole"))
            kind = op.output.dtype
            yield _Repeated(d, first + d, TensorDesc(parts, shape, kind), TensorDesc(whole, (extent,), kind))


def _relate(axes: TensorAxes, op: OpDesc) -> None:
    source, result = axes.of(op.inputs[0]), axes.of(op.output)
    repeated = list(_repeated(op))
    for each in repeated:
        axes.by_name[each.parts.name] = (Axis(each.parts.shape[0]), source[each.source])
        axes.by_name[each.whole.name] = (result[each.result],)
        axes.reshapes.append((each.parts, each.whole))
    skipped = {each.source for each in repeated}
    kept = [d for d in range(len(source)) if d not in skipped]
    axes.pair([source[d] for d in kept], [result[len(result) - len(source) + d] for d in kept], op)


def _tile(builder: Builder, op: OpDesc, name: str) -> None:
    """``out[i] = in[i mod extent]``; an operand of fewer dims is repeated as a whole."""
    points, source = builder.points(op.output), op.inputs[0]
    first = len(op.output.shape) - len(source.shape)
    places: list[Place] = list(points.groups[first:])
    for each in _repeated(op):
        extent, inner = source.shape[each.source], len(builder.axes.groups(source)[each.source])
        if (each.parts.name, each.whole.name) not in builder.axes.opaque:
            group = points.groups[each.result]
            places[each.source] = group[len(group) - inner :]
        elif isinstance(extent, Sym):
            number = ix.modulo(points.position(each.result), ix.from_dim(extent))
            places[each.source] = computed_place(number, extent)
        else:
            places[each.source] = ix.modulo(points.position(each.result), Num(extent))
    builder.define(op.output, points, builder.at(source, places), name)


TILE = Lowering(_relate, _tile)
