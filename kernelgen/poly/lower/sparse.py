"""CSR operators: a matrix is ``indptr`` (rows + 1), ``indices`` (columns) and ``values``.

All of them ask for the row of a stored element. Rows are counted once, in as many steps as there are elements and rows::

    marks[indptr[r]] += 1 for every row but the first;     row[p] = marks[0] + ... + marks[p]

Sums over a row are then accumulations at ``row[p]``.
"""

from __future__ import annotations

from kernelgen.composite import scalar_rules as vocabulary
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import Accumulate, Expr, Index, Load, Num, Store, ValueIndex
from kernelgen.poly.lower.builder import ALGEBRA, Builder, wide_type
from kernelgen.poly.lower.indexing import held_place
from kernelgen.poly.lower.lowering import Lowering
from kernelgen.poly.lower.points import Place, Points, nearest_place
from kernelgen.poly.model.factored_axes import DimAxes, TensorAxes
from kernelgen.poly.model.scop import Statement
from kernelgen.tensor.dims import Dim
from kernelgen.tensor.dtypes import INT32, INT64
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operators.csr import CSR_MUL
from kernelgen.tensor.operators.elemwise import DIV, MUL


def _row_numbers(builder: Builder, indptr: Value, indices: Value) -> Value:
    """The row of every stored element; made once for each pair."""
    axes = builder.axes
    name = f"rows_{axes.name(indptr)}_{axes.name(indices)}"
    rows = axes.temporary(name, indices.shape, INT32, axes.of(indices))
    if name not in builder.buffers:
        points = Points((), ()).counted(indptr.shape[0] - 2)
        start = ValueIndex(builder.at(indptr, [ix.add(points.position(0), Num(1))]))
        _counted(builder, rows, points, start)
    return rows


def _counted(builder: Builder, result: Value, points: Points, place: ValueIndex) -> None:
    """``result[k]`` is the number of points whose place is at most k."""
    name = builder.axes.name(result)
    marks = builder.axes.temporary(f"{name}_marks", result.shape, INT32, builder.axes.of(result))
    extent = result.shape[0]
    valid, held = held_place(place.value, extent if extent != 0 else 1)
    zero, one = ALGEBRA.literal(0, INT32), ALGEBRA.literal(1, INT32)
    builder.scatter(marks, lambda _: zero, points, [held], ([valid], one), marks.name)
    box = builder.points(result)
    total = builder.temporary(f"{name}_total", INT32, ())
    target = builder.target(result)
    step = Accumulate(total, (), "add", Load(builder.source(marks), box.index))
    keep = Store(target, box.index, ALGEBRA.cast(Load(total, ()), target.dtype))
    if not box.is_empty:
        builder.statements.append(Statement(f"{name}_count", box.iterators, (step, keep), ordered=True))


def _place(number: Expr, extent: Dim) -> Index:
    """A place that is inside because the matrix is sound."""
    return nearest_place(ValueIndex(number), extent)


def _met(builder: Builder, node: Node, dense: Value, points: Points) -> Expr:
    """The dense element at the place of every stored one; a dense dim of extent 1 is broadcast."""
    indptr, indices = node.args[:2]
    stored: list[Place] = [points.groups[0]]
    row = builder.at(_row_numbers(builder, indptr, indices), stored)
    column = builder.at(indices, stored)
    rank = len(dense.shape)
    both = [_place(number, extent) for number, extent in zip((row, column)[-rank:], dense.shape, strict=False)]
    rest = points.groups[len(points.groups) - max(rank - 2, 0) :]
    return builder.at(dense, [*both[: min(rank, 2)], *rest])


def _relate_stored(axes: TensorAxes, node: Node, stored: DimAxes, dense: Value | None, result: DimAxes) -> None:
    """The dims of stored elements, and the further dims of a dense operand with the last ones of the result."""
    indptr, indices = axes.of(node.args[0]), axes.of(node.args[1])
    axes.hold(*indptr)
    axes.pair(indices, stored, node)
    if dense is not None:
        axes.hold(*axes.of(dense)[:2])
        further = axes.of(dense)[2:]
        axes.pair(further, result[len(result) - len(further) :], node)


def _relate_elementwise(axes: TensorAxes, node: Node) -> None:
    result = axes.of(node.out)
    axes.broadcast(node, node.args[2:3], result)
    _relate_stored(axes, node, result[:1], node.args[3], result)


def _elementwise(builder: Builder, node: Node, name: str) -> None:
    """CSRMul and CSRDiv: the stored values times (over) the dense elements at their places."""
    points = builder.points(node.out)
    operands = [builder.read(node.args[2], points), _met(builder, node, node.args[3], points)]
    rule = vocabulary.ELEMENTWISE[MUL if node.op is CSR_MUL else DIV]
    builder.define(node.out, points, rule(ALGEBRA, operands, node), name)


def _relate_gather(axes: TensorAxes, node: Node) -> None:
    result = axes.of(node.out)
    _relate_stored(axes, node, result[:1], node.args[2], result)


def _gather(builder: Builder, node: Node, name: str) -> None:
    """CSRGather: the dense elements at the stored places."""
    points = builder.points(node.out)
    builder.define(node.out, points, _met(builder, node, node.args[2], points), name)


def _relate_sum(axes: TensorAxes, node: Node) -> None:
    values, result = axes.of(node.args[2]), axes.of(node.out)
    _relate_stored(axes, node, values[:1], None, result)
    axes.pair(values[1:], result[2:], node)
    axes.hold(result[0])


def _sum(builder: Builder, node: Node, name: str) -> None:
    """CSRReduceSum: ``out[row[p], 0, ...] += values[p, ...]``."""
    indptr, indices, values = node.args
    points = builder.points(values)
    row = builder.at(_row_numbers(builder, indptr, indices), points.groups[:1])
    places: list[Place] = [_place(row, node.out.shape[0]), (), *points.groups[1:]]
    zero = ALGEBRA.literal(0, wide_type(node.out.dtype))
    builder.scatter(node.out, lambda _: zero, points, places, ([], builder.read(values, points)), name)


def _relate_product(axes: TensorAxes, node: Node) -> None:
    values, dense, result = axes.of(node.args[2]), axes.of(node.args[3]), axes.of(node.out)
    _relate_stored(axes, node, values[:1], None, result)
    axes.hold(dense[0], result[0])
    axes.pair(dense[1:], result[1:], node)


def _product(builder: Builder, node: Node, name: str) -> None:
    """CSRMV and CSRMM: ``out[row[p], j] += values[p] * dense[indices[p], j]``."""
    indptr, indices, values, dense = node.args
    points = Points.over([*builder.axes.groups(values)[:1], *builder.axes.groups(dense)[1:]])
    stored, rest = points.groups[:1], points.groups[1:]
    wide = wide_type(node.out.dtype)
    row = builder.at(_row_numbers(builder, indptr, indices), stored)
    column = builder.at(indices, stored)
    factor = ALGEBRA.cast(builder.at(values, [*stored, *[()] * (len(values.shape) - 1)]), wide)
    met = ALGEBRA.cast(builder.at(dense, [_place(column, dense.shape[0]), *rest]), wide)
    zero = ALGEBRA.literal(0, wide)
    term = ([], ALGEBRA.call("mul", factor, met))
    builder.scatter(node.out, lambda _: zero, points, [_place(row, node.out.shape[0]), *rest], term, name)


def _relate_to_coo(axes: TensorAxes, node: Node) -> None:
    axes.hold(*axes.of(node.args[0]), *axes.of(node.out))


def _to_coo(builder: Builder, node: Node, name: str) -> None:
    """CSR2COO: the row number of every stored element."""
    rows = _row_numbers(builder, node.args[0], node.out)
    points = builder.points(node.out)
    builder.define(node.out, points, builder.read(rows, points), name)


def _from_coo(builder: Builder, node: Node, _: str) -> None:
    """COO2CSR: ``indptr[h]`` is the number of elements in the rows before h."""
    source = node.args[0]
    points = builder.points(source)
    row = ALGEBRA.cast(builder.read(source, points), INT64)
    _counted(builder, node.out, points, ValueIndex(ALGEBRA.call("add", row, 1)))


CSR_ELEMENTWISE = Lowering(_relate_elementwise, _elementwise)
CSR_GATHER = Lowering(_relate_gather, _gather)
CSR_SUM = Lowering(_relate_sum, _sum)
CSR_PRODUCT = Lowering(_relate_product, _product)
CSR_TO_COO = Lowering(_relate_to_coo, _to_coo)
COO_TO_CSR = Lowering(_relate_to_coo, _from_coo)
