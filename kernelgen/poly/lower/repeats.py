"""Tile: a repeated dim is a dim of repetitions around the dim itself.

    y: [m s] = Tile(x: [s])      ->      y[r, i] = x[i] over the leaf axes r < m, i < s of the result's dim

A Reshape of a broadcast ``[m, s]`` is the same, and the result's dim is split as for one. Where another operator addresses
that dim by number, it stays whole: ``y[j] = x[j mod s]``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernelgen.nest import index as ix
from kernelgen.nest.nodes import Num
from kernelgen.poly.lower.builder import Builder
from kernelgen.poly.lower.lowering import Lowering
from kernelgen.poly.lower.points import Place, computed_place
from kernelgen.poly.model.axes import Axis
from kernelgen.poly.model.factored_axes import TensorAxes
from kernelgen.tensor.dims import Dim, Sym
from kernelgen.tensor.graph import Node, Value


@dataclass(frozen=True)
class _Repeated:
    """A dim that is repeated: its place in the operand and in the result, and both views of the result's dim."""

    source: int
    result: int
    parts: Value
    whole: Value


def _repeated(axes: TensorAxes, node: Node) -> Iterator[_Repeated]:
    """The dims of the operand that the result has more than once; one of extent 1 is broadcast."""
    first = len(node.out.shape) - len(node.args[0].shape)
    counts = node.attrs.dims("multiples")
    for d, dim in enumerate(node.args[0].shape):
        extent = node.out.shape[first + d]
        if dim not in (1, extent):
            shape: tuple[Dim, ...] = (counts[len(counts) - len(node.args[0].shape) + d], dim)
            name, kind = axes.name(node.out), node.out.dtype
            parts = axes.temporary(f"{name}_parts{d}", shape, kind)
            yield _Repeated(d, first + d, parts, axes.temporary(f"{name}_whole{d}", (extent,), kind))


def _relate(axes: TensorAxes, node: Node) -> None:
    source, result = axes.of(node.args[0]), axes.of(node.out)
    repeated = list(_repeated(axes, node))
    for each in repeated:
        axes.known[each.parts] = (Axis(each.parts.shape[0]), source[each.source])
        axes.known[each.whole] = (result[each.result],)
        axes.reshapes.append((each.parts, each.whole))
    skipped = {each.source for each in repeated}
    kept = [d for d in range(len(source)) if d not in skipped]
    axes.pair([source[d] for d in kept], [result[len(result) - len(source) + d] for d in kept], node)


def _tile(builder: Builder, node: Node, name: str) -> None:
    """``out[i] = in[i mod extent]``; an operand of fewer dims is repeated as a whole."""
    points, source = builder.points(node.out), node.args[0]
    first = len(node.out.shape) - len(source.shape)
    places: list[Place] = list(points.groups[first:])
    for each in _repeated(builder.axes, node):
        extent, inner = source.shape[each.source], len(builder.axes.groups(source)[each.source])
        if (each.parts, each.whole) not in builder.axes.opaque:
            group = points.groups[each.result]
            places[each.source] = group[len(group) - inner :]
        elif isinstance(extent, Sym):
            number = ix.modulo(points.position(each.result), ix.from_dim(extent))
            places[each.source] = computed_place(number, extent)
        else:
            places[each.source] = ix.modulo(points.position(each.result), Num(extent))
    builder.define(node.out, points, builder.at(source, places), name)


TILE = Lowering(_relate, _tile)
