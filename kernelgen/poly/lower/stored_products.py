"""Products with weights that are stored narrower than they are computed with, which stay so in memory.

``out[i, j] += x[i, (g, t)] * ((w[g, t, j] - zero[g, j]) * scale[g, j])`` over groups ``g`` and their terms ``t``
"""

from __future__ import annotations

from kernelgen.nest import index as ix
from kernelgen.nest.nodes import Expr, Index, Num
from kernelgen.poly.lower.builder import ALGEBRA, Builder, wide_type
from kernelgen.poly.lower.lowering import Lowering
from kernelgen.poly.lower.points import Place, Points
from kernelgen.poly.model.axes import Axis
from kernelgen.poly.model.factored_axes import TensorAxes
from kernelgen.tensor.dims import product
from kernelgen.tensor.dtypes import DType
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operators.matmul import BITS, HALF_NIBBLE, NIBBLE

STEPS = 2 * HALF_NIBBLE
"""What half a byte holds."""


def _relate(axes: TensorAxes, node: Node) -> None:
    """The terms of a row are groups of those that the weights have; where two lie in a byte, that is a dim of its own."""
    x, weights, *others = node.args
    result, stored = axes.of(node.out), axes.of(weights)
    axes.pair((*axes.of(x)[:-1], stored[-1]), result, node)
    for each in others:
        axes.pair(axes.of(each), (stored[0], stored[-1]), node)
    parts, whole = _terms(axes, node)
    axes.known[whole] = axes.of(x)[-1:]
    axes.known[parts] = (*stored[:2], *map(Axis, parts.shape[2:]))
    axes.reshapes.append((parts, whole))


def _terms(axes: TensorAxes, node: Node) -> tuple[Value, Value]:
    """The terms as the weights have them and as a row has them: values that no operator gives."""
    name, (x, weights) = axes.name(node.out), node.args[:2]
    inside = (2,) if _are_nibbles(node) else ()
    parts = axes.temporary(f"{name}_parts", (*weights.shape[:2], *inside), x.dtype)
    return parts, axes.temporary(f"{name}_terms", x.shape[-1:], x.dtype)


def _are_nibbles(node: Node) -> bool:
    return node.attrs.int(BITS, 0) == NIBBLE


def _lower(builder: Builder, node: Node, name: str) -> None:
    parts, whole = _terms(builder.axes, node)
    terms = builder.axes.groups(parts)
    points = Points.over([*builder.axes.groups(node.out), *terms[:2]])
    *outer, columns, groups, inner = points.groups
    wide = wide_type(node.args[0].dtype)
    stored = builder.at(node.args[1], (groups, inner, columns))
    each = [builder.at(operand, (groups, columns)) for operand in node.args[2:]]
    given = [
        ALGEBRA.cast(builder.at(node.args[0], [*outer, _place(builder, (parts, whole), points, half)]), wide)
        for half in range(1 + _are_nibbles(node))
    ]
    total = _product(given, stored, each, wide, is_row=product(node.out.shape[:-1]) == 1)
    builder.reduce(node.out, points, [*outer, columns], ("add", total, wide), name)


def _product(x: list[Expr], stored: Expr, each: list[Expr], wide: DType, is_row: bool) -> Expr:
    """Of one element of what is stored."""
    if len(x) == 1:
        return _times(x[0], _number(ALGEBRA.cast(stored, wide), each))
    if is_row:
        return _of_row(x[0], x[1], stored, each, wide)
    low, high = (_times(*pair) for pair in zip(x, (_number(half, each) for half in _halves(stored, wide)), strict=True))
    return ALGEBRA.call("add", low, high)


def _of_row(low: Expr, high: Expr, stored: Expr, each: list[Expr], wide: DType) -> Expr:
    """``low * (n % 16 - 8) + high * (n // 16 - 8)`` with two conversions of ``n``, and without a subtraction for each number.

    ``(low - high / 16) * (n % 16) + high / 16 * n - 8 * (low + high)``: the last term is the same for all columns.
    """
    part = _times(high, 1 / STEPS)
    rest = ALGEBRA.cast(ALGEBRA.call("floor_mod", stored, STEPS), wide)
    terms = ALGEBRA.call("add", _times(ALGEBRA.call("sub", low, part), rest), _times(part, ALGEBRA.cast(stored, wide)))
    both = ALGEBRA.call("add", low, high)
    terms = ALGEBRA.call("add", terms, _times(both, -HALF_NIBBLE))
    for zeros in each[1:]:
        terms = ALGEBRA.call("add", terms, _times(_times(both, -1.0), zeros))
    return _times(terms, each[0]) if each else terms


def _place(builder: Builder, terms: tuple[Value, Value], points: Points, half: int) -> Place:
    """Where a row has the term: over the leaf axes of its dim, or as a number where these are others."""
    parts, _ = terms
    rank = len(points.groups)
    if terms not in builder.axes.opaque:
        last: tuple[Index, ...] = (Num(half),) if len(parts.shape) > 2 else ()
        return (*points.groups[-2], *points.groups[-1], *last)
    flat: Index = Num(0)
    for dim, extent in zip((rank - 2, rank - 1), parts.shape, strict=False):
        flat = ix.add(ix.multiply(flat, ix.from_dim(extent)), points.position(dim))
    return ix.add(ix.multiply(flat, Num(2)), Num(half)) if len(parts.shape) > 2 else flat


def _times(left: Expr, right: Expr | float) -> Expr:
    return ALGEBRA.call("mul", left, right)


def _halves(stored: Expr, wide: DType) -> tuple[Expr, Expr]:
    low, high = (ALGEBRA.call(function, stored, STEPS) for function in ("floor_mod", "floor_div"))
    return _less_half(low, wide), _less_half(high, wide)


def _less_half(nibble: Expr, wide: DType) -> Expr:
    return ALGEBRA.call("sub", ALGEBRA.cast(nibble, wide), HALF_NIBBLE)


def _number(stored: Expr, each: list[Expr]) -> Expr:
    for zeros in each[1:]:
        stored = ALGEBRA.call("sub", stored, zeros)
    for scales in each[:1]:
        stored = ALGEBRA.call("mul", stored, scales)
    return stored


STORED_MATMUL = Lowering(_relate, _lower)
