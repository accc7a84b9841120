"""CumSum and CumProd: ``acc[a, b] = f(acc[a, b], in[a, i, b]); out[a, i, b] = acc[a, b]``, in order of i."""

from __future__ import annotations

from kernelgen.nest import index as ix
from kernelgen.nest.neutral import neutral_element
from kernelgen.nest.nodes import Accumulate, Load, Num, Store
from kernelgen.poly.lower.builder import ALGEBRA, Builder, wide_type
from kernelgen.poly.lower.lowering import Lowering
from kernelgen.poly.lower.points import Place
from kernelgen.poly.model.factored_axes import TensorAxes
from kernelgen.poly.model.scop import BodyStatement, Statement
from kernelgen.tensor.dtypes import INT8, INT16, INT32, UINT8, UINT16
from kernelgen.tensor.graph import Node
from kernelgen.tensor.operators.scan import CUM_PROD, CUM_SUM
from kernelgen.tensor.operators.type_rules import single_axis

NARROW = frozenset({INT8, UINT8, INT16, UINT16})
"""They wrap around alike in a wider type, which every machine adds and multiplies."""
FUNCTIONS = {CUM_SUM: "add", CUM_PROD: "mul"}


def _axis(node: Node) -> int:
    return single_axis(node, 0)


def _relate(axes: TensorAxes, node: Node) -> None:
    axes.pair(axes.of(node.args[0]), axes.of(node.out), node)
    if node.args[0].shape:
        axes.hold(axes.of(node.out)[_axis(node)])


def _scan(builder: Builder, node: Node, name: str) -> None:
    """``exclusive`` stores before it accumulates; ``reverse`` counts the axis from its end."""
    source, result, axis = node.args[0], node.out, _axis(node)
    points, function = builder.points(result), FUNCTIONS[node.op]
    wide = INT32 if result.dtype in NARROW else wide_type(result.dtype)
    exclusive = node.attrs.bool("exclusive", False)
    extent = result.shape[axis] if result.shape else 1
    if extent == 1:
        start = neutral_element(function, result.dtype)
        builder.define(result, points, start if exclusive else builder.read(source, points), name)
        return
    places: list[Place] = list(points.groups)
    if node.attrs.bool("reverse", False):
        places[axis] = ix.subtract(ix.subtract(ix.from_dim(extent), Num(1)), points.position(axis))
    kept = tuple(i for d, group in enumerate(points.groups) if d != axis for i in group)
    shape = [dim for d, dim in enumerate(builder.axes.groups(result)) if d != axis for dim in (a.extent for a in dim)]
    running = builder.temporary(f"{builder.axes.name(result)}_running", wide, shape)
    target = builder.target(result)
    step = Accumulate(running, kept, function, ALGEBRA.cast(builder.at(source, places), wide))
    keep = Store(target, builder.index(result, places), ALGEBRA.cast(Load(running, kept), target.dtype))
    body: tuple[BodyStatement, ...] = (keep, step) if exclusive else (step, keep)
    if not points.is_empty:
        builder.statements.append(Statement(name, points.iterators, body, ordered=True))


SCAN = Lowering(_relate, _scan)
