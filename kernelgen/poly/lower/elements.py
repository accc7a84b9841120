"""Structural operators that bring a rule for one element of their result, such as those of users' packages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kernelgen.composite.element_reads import element_reads
from kernelgen.composite.scalar_rules import ExprAlgebra
from kernelgen.nest import nodes as n
from kernelgen.poly.lower.builder import ALGEBRA, Builder, inside
from kernelgen.poly.lower.lowering import Lowering
from kernelgen.poly.lower.points import Place, nearest_place
from kernelgen.poly.model.factored_axes import TensorAxes
from kernelgen.tensor.algebra import ElementRule
from kernelgen.tensor.dims import Dim
from kernelgen.tensor.dtypes import INT64
from kernelgen.tensor.graph import Node


class Spot(NamedTuple):
    """A place along a dim: over its leaf axes, and as one number."""

    place: Place
    position: n.Index


@dataclass
class ElementsOf(ExprAlgebra):
    """The elements of an operator's operands as loads of a statement: :class:`kernelgen.tensor.algebra.Elements`."""

    builder: Builder
    node: Node

    def at(self, operand: int, *places: Spot) -> n.Expr:
        """The load; 0 where there is no element."""
        tensor = self.node.args[operand]
        if 0 in tensor.shape:
            return ALGEBRA.literal(0, tensor.dtype)
        return self.builder.at(tensor, [spot.place for spot in places])

    def extent(self, operand: int, dim: int) -> Dim:
        """The length of an operand's dim."""
        return self.node.args[operand].shape[dim]

    def number(self, place: Spot) -> n.Expr:
        """The place as an int64."""
        return n.IndexValue(place.position, INT64)

    def nearest(self, number: n.Expr, extent: Dim) -> Spot:
        """The number, clamped. Raises UnsupportedError for an extent that may be 0."""
        place = nearest_place(n.ValueIndex(number), extent)
        return Spot(place, place)

    def inside(self, number: n.Expr, extent: Dim) -> n.Expr:
        """``0 <= number < extent``."""
        return inside(n.ValueIndex(number), extent)


def lowering_by_element(rule: ElementRule) -> Lowering:
    """The lowering of an operator with one result that ``rule`` gives element by element."""

    def relate(axes: TensorAxes, node: Node) -> None:
        """What is read where the result is runs together with it; dims that are read elsewhere are addressed by number."""
        result = axes.of(node.out)
        for read in element_reads(node, rule).reads:
            tensor = node.args[read.operand]
            for own, dim in zip(axes.of(tensor), read.places, strict=True) if tensor.constant is None else ():
                if dim is not None and own is not None and result[dim] is not None:
                    other = result[dim]
                    if other is not None and own.extent == other.extent:
                        axes.pair((own,), (other,), node)
                        continue
                    axes.hold(other)
                axes.hold(own)

    def lower(builder: Builder, node: Node, name: str) -> None:
        points = builder.points(node.out)
        spots = [Spot(group if group else n.Num(0), points.position(dim)) for dim, group in enumerate(points.groups)]
        builder.define(node.out, points, rule(ElementsOf(builder, node), *spots, attrs=node.attrs), name)

    return Lowering(relate, lower)
