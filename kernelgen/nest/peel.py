"""Takes vector loops and loops of rows apart where a place begins to be clamped, or ceases to be.

    vector for j in 0..54 {                           vector for j in 0..1 { y[j] = x[0] * 0 }
      y[j] = x[min(max(j - 1, 0), 51)] * m     ->     vector for j in 1..53 { y[j] = x[j - 1] * m }
    }                                                 vector for j in 53..54 { y[j] = x[51] * 0 }

A clamped place is regular in no loop around it; each piece is. Legality: the pieces run the same iterations, in the same
order, and ``min``, ``max`` and comparisons of places are replaced only where the range of the loop's variable decides them.
Bindings get a name of their own in every piece; loops that allocate are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

from kernelgen.dtypes import BOOL
from kernelgen.nest.index import binary, map_values, stride, substitute
from kernelgen.nest.nodes import (
    Accumulate,
    Alloc,
    Block,
    Call,
    Expr,
    For,
    If,
    Index,
    IndexBinary,
    IndexOp,
    IndexValue,
    Let,
    Literal,
    Load,
    LoopKind,
    Nest,
    Num,
    Ref,
    Statement,
    Store,
)
from kernelgen.nest.ranges import Range, range_of
from kernelgen.nest.walk import accesses_of, map_blocks, map_expression, statements

MOST_CUTS = 4


def peel(nest: Nest) -> Nest:
    """The nest with such loops in pieces."""
    return replace(nest, body=map_blocks(nest.body, _block))


def _block(block: Block) -> Block:
    parts: list[Statement] = []
    for part in block.statements:
        if isinstance(part, For) and part.kind in (LoopKind.VECTOR, LoopKind.ROWS):
            parts += _pieces(part)
        else:
            parts.append(part)
    return Block(tuple(parts))


def _pieces(loop: For) -> list[For]:
    lower, upper = loop.lower, loop.upper
    inside = list(statements(loop.body))
    if not (isinstance(lower, Num) and isinstance(upper, Num)) or loop.step != 1:
        return [loop]
    found = {cut for part in inside for _, index in accesses_of(part) for at in index for cut in _cuts(at, loop.var)}
    cuts = sorted(cut for cut in found if lower.value < cut < upper.value)
    if len(cuts) > MOST_CUTS or any(isinstance(part, Alloc) for part in inside):
        return [loop]
    ends = (lower.value, *cuts, upper.value)
    return [
        replace(
            loop,
            lower=Num(low),
            upper=Num(high),
            body=_piece(loop, low, high, f"_{loop.var}_{number}" if number else ""),
        )
        for number, (low, high) in enumerate(pairwise(ends))
    ]


# ---------------------------------------------------------------- where


def _cuts(index: Index, variable: str) -> Iterator[int]:
    """The first values of a variable from which on a clamp has another outcome."""
    if not isinstance(index, IndexBinary):
        return
    yield from _cuts(index.left, variable)
    yield from _cuts(index.right, variable)
    if index.op not in (IndexOp.MIN, IndexOp.MAX) or not isinstance(index.right, Num):
        return
    plain = unclamped(index.left)
    step, start = stride(plain, variable), substitute(plain, {variable: Num(0)})
    if step is None or step < 1 or not isinstance(start, Num):
        return
    distance = index.right.value - start.value
    yield -(-distance // step) if index.op is IndexOp.MAX else distance // step + 1


def unclamped(index: Index) -> Index:
    """The place inside its clamps."""
    while isinstance(index, IndexBinary) and index.op in (IndexOp.MIN, IndexOp.MAX) and isinstance(index.right, Num):
        index = index.left
    return index


# ---------------------------------------------------------------- one piece


def _piece(loop: For, low: int, high: int, suffix: str) -> Block:
    """The body where the variable is in ``low <= v < high``."""
    known = {loop.var: Range(low, high - 1)}
    names = frozenset(part.name for part in statements(loop.body) if isinstance(part, Let))

    def edit(expr: Expr) -> Expr:
        match expr:
            case Ref(name) if name in names:
                return replace(expr, name=name + suffix)
            case Load(buffer, index):
                return Load(buffer, tuple(_settled(at, known) for at in index))
            case IndexValue(index, dtype):
                return IndexValue(_settled(index, known), dtype)
            case Call():
                return _decided(expr, known)
            case _:
                return expr

    def rewritten(part: Statement) -> Statement:
        match part:
            case Block(parts):
                return Block(tuple(map(rewritten, parts)))
            case For() | If():
                body = rewritten(part.body)
                return replace(part, body=body) if isinstance(body, Block) else part
            case Let(name, value):
                return Let(name + suffix, map_expression(value, edit))
            case Store() | Accumulate():
                index = tuple(_settled(map_values(at, lambda v: map_expression(v, edit)), known) for at in part.index)
                return replace(part, index=index, value=map_expression(part.value, edit))
            case _:
                return part

    return Block(tuple(map(rewritten, loop.body.statements)))


def _settled(index: Index, known: Mapping[str, Range]) -> Index:
    """The place without clamps that the ranges decide."""
    if not isinstance(index, IndexBinary):
        return index
    left, right = _settled(index.left, known), _settled(index.right, known)
    if index.op in (IndexOp.MIN, IndexOp.MAX):
        smaller = _compared(left, right, known)
        if smaller is not None:
            return left if smaller == (index.op is IndexOp.MIN) else right
    return binary(index.op, left, right)


def _compared(left: Index, right: Index, known: Mapping[str, Range]) -> bool | None:
    """Whether ``left <= right`` everywhere; None where it is so in some places only."""
    a, b = range_of(left, known), range_of(right, known)
    if a.high is not None and b.low is not None and a.high <= b.low:
        return True
    return False if a.low is not None and b.high is not None and a.low >= b.high else None


def _decided(call: Call, known: Mapping[str, Range]) -> Expr:
    """A comparison of places, and what follows from it, where the ranges decide it."""
    match call:
        case Call("greater_equal" | "greater" | "less" | "less_equal" as name, (first, second)):
            return _comparison(call, name, first, second, known)
        case Call("logical_and", (Literal(value), other)) | Call("logical_and", (other, Literal(value))):
            return other if value else Literal(False, BOOL)
        case Call("select", (Literal(value), first, second)):
            return first if value else second
        case _:
            return call


def _comparison(call: Call, name: str, first: Expr, second: Expr, known: Mapping[str, Range]) -> Expr:
    a, b = _place(first), _place(second)
    if a is None or b is None:
        return call
    if name in ("greater_equal", "greater"):
        a, b = b, a
    one, other = range_of(a, known), range_of(b, known)
    strict = name in ("greater", "less")
    if one.high is not None and other.low is not None and one.high + strict <= other.low:
        return Literal(True, BOOL)
    if one.low is not None and other.high is not None and one.low >= other.high + (not strict):
        return Literal(False, BOOL)
    return call


def _place(expr: Expr) -> Index | None:
    """The place that a scalar is, a number too."""
    if isinstance(expr, IndexValue):
        return expr.index
    return Num(int(expr.value)) if isinstance(expr, Literal) and expr.dtype.is_integer else None
