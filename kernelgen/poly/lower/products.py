"""Matrix products: ``out[b, i, j] += left[b, i, k] * right[b, k, j]``."""

from __future__ import annotations

from collections.abc import Callable

from kernelgen.nest import index as ix
from kernelgen.nest.nodes import Expr, Index, Num
from kernelgen.poly.lower.builder import ALGEBRA, Builder, wide_type
from kernelgen.poly.lower.lowering import Lowering
from kernelgen.poly.lower.points import Place, Points
from kernelgen.poly.model.factored_axes import TensorAxes
from kernelgen.tensor.dims import Dim
from kernelgen.tensor.dtypes import DType
from kernelgen.tensor.graph import Node
from kernelgen.tensor.operators.type_rules import broadcast_shapes

FRACTAL = "FRACTAL_NZ"
BLOCK = 16
"""The side of the blocks that a FRACTAL_NZ matrix is stored in."""


def fractal_places(row: Index, column: Index) -> tuple[Place, Place, Place, Place]:
    """Where ``[row, column]`` lies in FRACTAL_NZ: ``[column / 16, row / 16, row % 16, column % 16]``."""
    return (
        ix.floor_divide(column, Num(BLOCK)),
        ix.floor_divide(row, Num(BLOCK)),
        ix.modulo(row, Num(BLOCK)),
        ix.modulo(column, Num(BLOCK)),
    )


class _Operand:
    """A matrix operand: where its rows and columns are."""

    def __init__(self, node: Node, place: int) -> None:
        word, flag = (("left_format", "transpose_a"), ("right_format", "transpose_b"))[place]
        self.tensor = node.args[place]
        self.fractal = FRACTAL in (self.tensor.layout, node.attrs.str(word, "DefaultFormat")) and len(self.shape) >= 4
        self.transposed = node.attrs.bool(flag, False)

    @property
    def shape(self) -> tuple[Dim, ...]:
        return self.tensor.shape

    @property
    def batch(self) -> int:
        """The number of batch dims."""
        return len(self.shape) - (4 if self.fractal else 2)

    def dims(self) -> tuple[int, int]:
        """The dims of the matrix's rows and columns, after transposition."""
        first, last = len(self.shape) - 2, len(self.shape) - 1
        return (last, first) if self.transposed else (first, last)

    def extents(self) -> tuple[Dim, Dim]:
        """Rows and columns, after transposition; padding included."""
        if self.fractal:
            blocks = self.shape[-4:]
            rows, columns = blocks[1] * blocks[2], blocks[0] * blocks[3]
            return (columns, rows) if self.transposed else (rows, columns)
        row, column = self.dims()
        return self.shape[row], self.shape[column]

    def places(self, row: tuple[Place, Index], column: tuple[Place, Index]) -> tuple[Place, ...]:
        """Each coordinate is given as the group of its iterators, and as a number."""
        if self.transposed:
            row, column = column, row
        return fractal_places(row[1], column[1]) if self.fractal else (row[0], column[0])


def _relate(axes: TensorAxes, node: Node) -> None:
    """Rows, columns, the inner dim and batch dims pair up where both sides are plain matrices."""
    left, right = _Operand(node, 0), _Operand(node, 1)
    result = axes.of(node.out)
    tensors = [left.tensor, right.tensor, node.out]
    fractal = [left.fractal, right.fractal, node.out.layout == FRACTAL and len(node.out.shape) >= 4]
    for tensor, blocked in zip(tensors, fractal, strict=True):
        if blocked or any(fractal):
            axes.hold(*axes.of(tensor)[-4 if blocked else -2 :])
    for operand in (left, right):
        own = axes.of(operand.tensor)[: operand.batch]
        outer = result[: len(result) - (4 if fractal[2] else 2)]
        length = min(len(own), len(outer))
        if length:
            axes.pair(own[-length:], outer[-length:], node)
    if not any(fractal):
        (m, k), (k2, n) = ([axes.of(each.tensor)[d] for d in each.dims()] for each in (left, right))
        axes.pair((m, k, n), (result[-2], k2, result[-1]), node)
        if len(node.args) == 3:
            axes.broadcast(node, node.args[2:], result)


def _matmul(builder: Builder, node: Node, name: str) -> None:
    """MatMul, BatchMatMul: half precision accumulates in float32; an optional third operand is added."""
    left, right, result = _Operand(node, 0), _Operand(node, 1), node.out
    is_fractal = result.layout == FRACTAL and len(result.shape) >= 4
    rows, columns, inner = _extents(node, left, right, is_fractal)
    batch = broadcast_shapes((left.shape[: left.batch], right.shape[: right.batch]))
    plain = not (left.fractal or right.fractal or is_fractal)
    points, m, n, k = _points(builder, node, plain, len(batch), (rows, columns, inner))
    first = _element(builder, left, points, len(batch), (m, k), is_fractal)
    second = _element(builder, right, points, len(batch), (k, n), is_fractal)
    outer: list[Place] = list(points.groups[: len(batch)])
    places = [*outer, *(fractal_places(m[1], n[1]) if is_fractal else (m[0], n[0]))]
    wide = _sum_type(node)
    term = ALGEBRA.call("mul", ALGEBRA.cast(first, wide), ALGEBRA.cast(second, wide))
    builder.reduce(result, points, places, ("add", term, wide), name, with_bias(builder, node, wide))


def with_bias(builder: Builder, node: Node, wide: DType) -> Callable[[Expr], Expr] | None:
    """What adds a third operand of ``node``, in the data type ``wide``, to a sum; None where there is none."""

    def finish(total: Expr) -> Expr:
        return ALGEBRA.call("add", total, ALGEBRA.cast(builder.read(node.args[2], builder.points(node.out)), wide))

    return finish if len(node.args) == 3 else None


def _extents(node: Node, left: _Operand, right: _Operand, is_fractal: bool) -> tuple[Dim, Dim, Dim]:
    """Rows, columns and terms: those of the result, padded where it is; plain operands know how many terms there are."""
    rows, columns = node.out.shape[-2:]
    if is_fractal:
        rows, columns = node.out.shape[-3] * BLOCK, node.out.shape[-4] * BLOCK
    plain = [o.extents()[k] for o, k in ((left, 1), (right, 0)) if not o.fractal]
    return rows, columns, plain[0] if plain else left.extents()[1]


_Coordinate = tuple[Place, Index]


def _points(
    builder: Builder, node: Node, plain: bool, batch: int, extents: tuple[Dim, Dim, Dim]
) -> tuple[Points, _Coordinate, _Coordinate, _Coordinate]:
    """Batch, rows, columns and inner dim; plain matrices run over the axes of their dims, others over numbers."""
    groups = builder.axes.groups(node.out)[:batch]
    if plain:
        left = _Operand(node, 0)
        inner = builder.axes.groups(left.tensor)[left.dims()[1]]
        points = Points.over([*builder.axes.groups(node.out), inner])
    else:
        points = Points.over(groups).counted(*extents)
    m, n, k = ((points.groups[d], points.position(d)) for d in range(batch, batch + 3))
    return points, m, n, k


def _element(
    builder: Builder,
    operand: _Operand,
    points: Points,
    batch: int,
    sides: tuple[_Coordinate, _Coordinate],
    padded: bool,
) -> Expr:
    """The operand's element; 0 outside of a plain operand whose result is padded."""
    row, column = sides
    outer: list[Place] = list(points.groups[batch - operand.batch : batch])
    places = [*outer, *operand.places(row, column)]
    if operand.fractal or not padded:
        return builder.at(operand.tensor, places)
    numbers = (column[1], row[1]) if operand.transposed else (row[1], column[1])
    return builder.within(operand.tensor, [*outer, *numbers], range(len(outer), len(outer) + 2), 0.0)


def _sum_type(node: Node) -> DType:
    return wide_type(node.args[0].dtype) if node.args[0].dtype.is_float else node.out.dtype


MATMUL = Lowering(_relate, _matmul)
