"""Reductions: ``acc[kept] = f(acc[kept], in[all])``."""

from __future__ import annotations

from kernelgen.composite import scalar_rules as vocabulary
from kernelgen.nest.nodes import Expr, IndexValue, Load
from kernelgen.poly.lower.builder import ALGEBRA, Builder, wide_type
from kernelgen.poly.lower.lowering import Lowering
from kernelgen.poly.lower.points import Place, Points
from kernelgen.poly.model.factored_axes import TensorAxes, sized
from kernelgen.tensor.dtypes import BOOL, INT32, INT64
from kernelgen.tensor.graph import Node
from kernelgen.tensor.operators.reduce import ARGMAX
from kernelgen.tensor.operators.status import ELEM_ANY
from kernelgen.tensor.operators.type_rules import normal_axis, reduced_axes


def _relate(axes: TensorAxes, node: Node) -> None:
    _relate_kept(axes, node, frozenset(reduced_axes(node)))


def _relate_kept(axes: TensorAxes, node: Node, reduced: frozenset[int]) -> None:
    kept = [a for d, a in enumerate(axes.of(node.args[0])) if d not in reduced and a is not None]
    axes.pair(kept, sized(node, [a for a in axes.of(node.out) if a is not None], len(kept)), node)


def kept_places(builder: Builder, node: Node, points: Points, reduced: frozenset[int]) -> list[Place]:
    """The place of the result of ``node`` for ``points`` of its operand: the groups that ``builder`` has for dims that
    are not ``reduced``, in order.
    """
    left = iter([group for d, group in enumerate(points.groups) if d not in reduced and group])
    return [next(left) if group else () for group in builder.axes.groups(node.out)]


def _reduce(builder: Builder, node: Node, name: str) -> None:
    """float16 and bfloat16 sums and products run in float32, as in AKG."""
    points = builder.points(node.args[0])
    function = vocabulary.REDUCTIONS[node.op]
    dtype = node.out.dtype
    wide = wide_type(dtype) if function in ("add", "mul") else dtype
    places = kept_places(builder, node, points, frozenset(reduced_axes(node)))
    value = builder.read(node.args[0], points)
    builder.reduce(node.out, points, places, (function, value, wide), name)


def _relate_all(axes: TensorAxes, node: Node) -> None:
    _relate_kept(axes, node, frozenset(range(len(node.args[0].shape))))


def _positive(builder: Builder, node: Node, name: str) -> None:
    """ElemAny, ElemAll: whether any (all) elements are greater than 0."""
    points = builder.points(node.args[0])
    function = "logical_or" if node.op is ELEM_ANY else "logical_and"
    value = ALGEBRA.call("greater", builder.read(node.args[0], points), 0)
    places: list[Place] = [()] * len(node.out.shape)
    builder.reduce(node.out, points, places, (function, value, BOOL), name)


def _extreme_dims(node: Node) -> frozenset[int]:
    return frozenset({normal_axis(node.attrs.int("axis", -1), len(node.args[0].shape))})


def _relate_extreme(axes: TensorAxes, node: Node) -> None:
    _relate_kept(axes, node, _extreme_dims(node))


def _extreme(builder: Builder, node: Node, name: str) -> None:
    """Argmax, Argmin: the extreme, then the smallest number along ``axis`` that has it; a NaN is the extreme, as in numpy."""
    source, dims = node.args[0], _extreme_dims(node)
    (dim,) = dims or (0,)
    points = builder.points(source)
    places = kept_places(builder, node, points, dims)
    index = builder.index(node.out, places)
    function = "maximum" if node.op is ARGMAX else "minimum"
    shape = [it.extent for it in builder.points(node.out).iterators]
    best = builder.temporary(f"{builder.axes.name(node.out)}_extreme", source.dtype, shape)
    value = builder.read(source, points)
    builder.accumulate(best, points, index, function, value, f"{name}_extreme")
    match: Expr = ALGEBRA.call("equal", value, Load(best, index))
    if source.dtype.is_float:
        match = ALGEBRA.call("logical_or", match, ALGEBRA.call("is_nan", value))
    wide = node.out.dtype if node.out.dtype in (INT32, INT64) else INT32
    number = IndexValue(points.position(dim), wide)
    term = ALGEBRA.call("select", match, number, ALGEBRA.literal(2**31 - 1, wide))
    builder.reduce(node.out, points, places, ("minimum", term, wide), name)


REDUCTION = Lowering(_relate, _reduce)
POSITIVE = Lowering(_relate_all, _positive)
EXTREME_POSITION = Lowering(_relate_extreme, _extreme)
