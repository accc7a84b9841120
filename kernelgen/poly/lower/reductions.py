"""Reductions: ``acc[kept] = f(acc[kept], in[all])``."""

from __future__ import annotations

from kernelgen.composite import scalar_rules as vocabulary
from kernelgen.composite.axes import normal_axis
from kernelgen.composite.description import OpDesc
from kernelgen.nest.nodes import Expr, IndexValue, Load
from kernelgen.poly.lower.builder import ALGEBRA, Builder, wide_type
from kernelgen.poly.lower.lowering import Lowering
from kernelgen.poly.lower.points import Place, Points
from kernelgen.poly.model.factored_axes import TensorAxes, sized
from kernelgen.tensor.dtypes import BOOL, INT32, INT64
from kernelgen.tensor.operators.reduce import ARGMAX
from kernelgen.tensor.operators.status import ELEM_ANY


def reduced_dims(op: OpDesc) -> frozenset[int]:
    """The dims that a reduction removes, as non-negative numbers; an empty or absent ``axis`` means all."""
    rank = len(op.inputs[0].shape)
    axis = op.attrs.ints("axis", ())
    return frozenset(d % rank for d in axis) if axis and rank else frozenset(range(rank))


def _relate(axes: TensorAxes, op: OpDesc) -> None:
    _relate_kept(axes, op, reduced_dims(op))


def _relate_kept(axes: TensorAxes, op: OpDesc, reduced: frozenset[int]) -> None:
    kept = [a for d, a in enumerate(axes.of(op.inputs[0])) if d not in reduced and a is not None]
    axes.pair(kept, sized(op, [a for a in axes.of(op.output) if a is not None], len(kept)), op)


def kept_places(builder: Builder, op: OpDesc, points: Points, reduced: frozenset[int]) -> list[Place]:
    """The place of the result of ``op`` for ``points`` of its operand: the groups that ``builder`` has for dims that
    are not ``reduced``, in order.
    """
    left = iter([group for d, group in enumerate(points.groups) if d not in reduced and group])
    return [next(left) if group else () for group in builder.axes.groups(op.output)]


def _reduce(builder: Builder, op: OpDesc, name: str) -> None:
    """float16 and bfloat16 sums and products run in float32, as in AKG."""
    points = builder.points(op.inputs[0])
    function = vocabulary.REDUCTIONS[op.name]
    dtype = op.output.dtype
    wide = wide_type(dtype) if function in ("add", "mul") else dtype
    places = kept_places(builder, op, points, reduced_dims(op))
    value = builder.read(op.inputs[0], points)
    builder.reduce(op.output, points, places, (function, value, wide), name)


def _relate_all(axes: TensorAxes, op: OpDesc) -> None:
    _relate_kept(axes, op, frozenset(range(len(op.inputs[0].shape))))


def _positive(builder: Builder, op: OpDesc, name: str) -> None:
    """ElemAny, ElemAll: whether any (all) elements are greater than 0."""
    points = builder.points(op.inputs[0])
    function = "logical_or" if op.name == ELEM_ANY.name else "logical_and"
    value = ALGEBRA.call("greater", builder.read(op.inputs[0], points), 0)
    places: list[Place] = [()] * len(op.output.shape)
    builder.reduce(op.output, points, places, (function, value, BOOL), name)


def _extreme_dims(op: OpDesc) -> frozenset[int]:
    return frozenset({normal_axis(op.attrs.int("axis", -1), len(op.inputs[0].shape))})


def _relate_extreme(axes: TensorAxes, op: OpDesc) -> None:
    _relate_kept(axes, op, _extreme_dims(op))


def _extreme(builder: Builder, op: OpDesc, name: str) -> None:
    """Argmax, Argmin: the extreme, then the smallest number along ``axis`` that has it; a NaN is the extreme, as in numpy."""
    source, dims = op.inputs[0], _extreme_dims(op)
    (dim,) = dims or (0,)
    points = builder.points(source)
    places = kept_places(builder, op, points, dims)
    index = builder.index(op.output, places)
    function = "maximum" if op.name == ARGMAX.name else "minimum"
    shape = [it.extent for it in builder.points(op.output).iterators]
    best = builder.temporary(f"{op.output.name}_extreme", source.dtype, shape)
    value = builder.read(source, points)
    builder.accumulate(best, points, index, function, value, f"{name}_extreme")
    match: Expr = ALGEBRA.call("equal", value, Load(best, index))
    if source.dtype.is_float:
        match = ALGEBRA.call("logical_or", match, ALGEBRA.call("is_nan", value))
    wide = op.output.dtype if op.output.dtype in (INT32, INT64) else INT32
    number = IndexValue(points.position(dim), wide)
    term = ALGEBRA.call("select", match, number, ALGEBRA.literal(2**31 - 1, wide))
    builder.reduce(op.output, points, places, ("minimum", term, wide), name)


REDUCTION = Lowering(_relate, _reduce)
POSITIVE = Lowering(_relate_all, _positive)
EXTREME_POSITION = Lowering(_relate_extreme, _extreme)
