"""Takes loops apart where a place begins to be clamped, a comparison of places has another outcome, or a digit a carry.

    vector for j in 0..54 {                           vector for j in 0..1 { y[j] = x[0] * 0 }
      y[j] = x[min(max(j - 1, 0), 51)] * m     ->     vector for j in 1..53 { y[j] = x[j - 1] * m }
    }                                                 vector for j in 53..54 { y[j] = x[51] * 0 }

    for i in 0..2 { for j in 0..16 {                  for i in 0..1 { for j in 0..16 { x[i * 16 + j] } }
      x[min(i * 16 + j, 16)]                   ->     for i in 1..2 { for j in 0..1 { x[i * 16 + j] }
    } }                                                               for j in 1..16 { x[16] } }

    vector for j in 0..17 { x[j / 16, j % 16] }   ->  vector for j in 0..16 { x[0, j] }; vector for j in 16..17 { x[1, j - 16] }

A clamped place, or digit, is regular in no loop around it; each piece is. A loop around others is taken apart where its
variable is the leading digit of a place, so that the loop inside ends where the place does. Legality: the pieces run the
same iterations, in the same order, and ``min``, ``max``, digits and comparisons of places are replaced only where the
ranges of the variables decide them. Bindings get a name of their own in every piece; loops that allocate, or are dealt to
cores, are left in one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from kernelgen.nest.index import add, binary, stride, substitute
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
    Literal,
    Load,
    LoopKind,
    Nest,
    Num,
    Statement,
    Store,
)
from kernelgen.nest.ranges import Range, range_of
from kernelgen.nest.substitute import renamed
from kernelgen.nest.walk import accesses_of, calls_of, map_expressions, statements
from kernelgen.tensor.dtypes import BOOL

MOST_CUTS = 4
Ranges = Mapping[str, Range]
FIRST_ABOVE = {"less": 0, "greater_equal": 0, "less_equal": 1, "greater": 1}
"""Comparison with a number -> how far above the number the place has the other outcome."""
SWAPPED = {"less": "greater", "greater": "less", "less_equal": "greater_equal", "greater_equal": "less_equal"}


def peel(nest: Nest) -> Nest:
    """The nest with such loops in pieces."""
    return replace(nest, body=_block(nest.body, {}))


def _block(block: Block, known: Ranges) -> Block:
    """A block where variables have these ranges, outer loops taken apart before inner ones."""
    parts: list[Statement] = []
    for part in block.statements:
        match part:
            case For():
                parts += [_inside(piece, known) for piece in _pieces(part, known)]
            case If(body=body):
                parts.append(replace(part, body=_block(body, known)))
            case Block():
                parts.append(_block(part, known))
            case _:
                parts.append(_statement(part, known))
    return Block(tuple(parts))


def _inside(loop: For, known: Ranges) -> For:
    return replace(loop, body=_block(loop.body, {**known, loop.var: _range(loop, known)}))


def _range(loop: For, known: Ranges) -> Range:
    last = range_of(loop.upper, known).high
    return Range(range_of(loop.lower, known).low, None if last is None else last - 1)


def _pieces(loop: For, known: Ranges) -> list[For]:
    lower, upper = loop.lower, loop.upper
    inside = list(statements(loop.body))
    if not (isinstance(lower, Num) and isinstance(upper, Num)) or loop.step != 1 or loop.kind is LoopKind.BLOCK:
        return [loop]
    within = {**known, loop.var: _range(loop, known)}
    for part in inside:
        if isinstance(part, For):
            within[part.var] = _range(part, within)
    cuts = _cuts(loop, inside, within)
    if len(cuts) > MOST_CUTS or any(isinstance(part, Alloc) for part in inside):
        return [loop]
    ends = (lower.value, *sorted(cuts), upper.value)
    return [_piece(loop, low, high, number) for number, (low, high) in enumerate(pairwise(ends))]


def _piece(loop: For, low: int, high: int, number: int) -> For:
    body = renamed(loop.body, f"_{loop.var}_{number}") if number else loop.body
    return replace(loop, lower=Num(low), upper=Num(high), body=body)


# ---------------------------------------------------------------- where


def _cuts(loop: For, inside: Sequence[Statement], within: Ranges) -> set[int]:
    """Where a loop is taken apart; at carries only if it is made of lanes or rows, and there are few."""
    bounds = {bound for part in inside for bound in _bounds(part)}
    cuts = {cut for at, bound in bounds for cut in _first_values(at, bound, loop, within)}
    if loop.kind not in (LoopKind.VECTOR, LoopKind.ROWS):
        return cuts
    indices = (at for part in inside for _, index in accesses_of(part) for at in index)
    carries = {carry for at in indices for carry in _carries(at, within)}
    more = {cut for at, carry in carries for cut in _first_values(at, carry, loop, within)}
    return cuts | more if len(cuts | more) <= MOST_CUTS else cuts


def _bounds(part: Statement) -> Iterator[tuple[Index, int]]:
    """Places without their clamps, and from which number on a clamp or a comparison has another outcome."""
    for _, index in accesses_of(part):
        for at in index:
            yield from _clamps(at)
    for call in calls_of(part):
        match call:
            case Call(name, (IndexValue(index), Literal(value))) if name in FIRST_ABOVE:
                yield index, int(value) + FIRST_ABOVE[name]
            case Call(name, (Literal(value), IndexValue(index))) if name in FIRST_ABOVE:
                yield index, int(value) + FIRST_ABOVE[SWAPPED[name]]
            case _:
                pass


def _clamps(index: Index) -> Iterator[tuple[Index, int]]:
    if not isinstance(index, IndexBinary):
        return
    yield from _clamps(index.left)
    yield from _clamps(index.right)
    if index.op in (IndexOp.MIN, IndexOp.MAX) and isinstance(index.right, Num):
        yield unclamped(index.left), index.right.value + (index.op is IndexOp.MIN)


def _carries(index: Index, within: Ranges) -> Iterator[tuple[Index, int]]:
    """Places of which there are digits, and where those begin anew."""
    if not isinstance(index, IndexBinary):
        return
    yield from _carries(index.left, within)
    yield from _carries(index.right, within)
    if index.op in (IndexOp.DIV, IndexOp.MOD) and isinstance(index.right, Num):
        first, last = _quotients(index.left, index.right.value, within)
        if first is not None and last is not None and last - first <= MOST_CUTS:
            yield from ((index.left, number * index.right.value) for number in range(first + 1, last + 1))


def _quotients(place: Index, divisor: int, known: Ranges) -> tuple[int | None, int | None]:
    """The least and the greatest of a place's quotients."""
    found = range_of(place, known)
    low, high = (None if end is None else end // divisor for end in (found.low, found.high))
    return low, high


def _first_values(place: Index, bound: int, loop: For, within: Ranges) -> Iterator[int]:
    """The first iterations inside of a loop from which on the place may be, and certainly is, ``bound`` or more.

    None where the rest of the place moves by as much as the variable: the outcome would still be open in most pieces.
    """
    step, rest = stride(place, loop.var), range_of(substitute(place, {loop.var: Num(0)}), within)
    own = within[loop.var]
    if step is None or step < 1 or rest.low is None or rest.high is None or rest.high - rest.low >= step:
        return
    for end in (rest.high, rest.low):
        first = -(-(bound - end) // step)
        if own.low is not None and own.high is not None and own.low < first <= own.high:
            yield first


def unclamped(index: Index) -> Index:
    """The place inside its clamps."""
    while isinstance(index, IndexBinary) and index.op in (IndexOp.MIN, IndexOp.MAX) and isinstance(index.right, Num):
        index = index.left
    return index


# ---------------------------------------------------------------- one piece


def _statement(part: Statement, known: Ranges) -> Statement:
    """A statement that holds no others, with all that the ranges decide."""

    def edit(expr: Expr) -> Expr:
        match expr:
            case Load(buffer, index):
                return Load(buffer, tuple(_settled(at, known) for at in index))
            case IndexValue(index, dtype):
                return IndexValue(_settled(index, known), dtype)
            case Call():
                return _decided(expr, known)
            case _:
                return expr

    edited = map_expressions(part, edit)
    if isinstance(edited, Store | Accumulate):
        return replace(edited, index=tuple(_settled(at, known) for at in edited.index))
    return edited


def _settled(index: Index, known: Ranges) -> Index:
    """The place without clamps and digits that the ranges decide."""
    if not isinstance(index, IndexBinary):
        return index
    left, right = _settled(index.left, known), _settled(index.right, known)
    if index.op in (IndexOp.MIN, IndexOp.MAX):
        smaller = _compared(left, right, known)
        if smaller is not None:
            return left if smaller == (index.op is IndexOp.MIN) else right
    if index.op in (IndexOp.DIV, IndexOp.MOD) and isinstance(right, Num):
        first, last = _quotients(left, right.value, known)
        if first is not None and first == last:
            return Num(first) if index.op is IndexOp.DIV else add(left, Num(-first * right.value))
    return binary(index.op, left, right)


def _compared(left: Index, right: Index, known: Ranges) -> bool | None:
    """Whether ``left <= right`` everywhere; None where it is so in some places only."""
    a, b = range_of(left, known), range_of(right, known)
    if a.high is not None and b.low is not None and a.high <= b.low:
        return True
    return False if a.low is not None and b.high is not None and a.low >= b.high else None


def _decided(call: Call, known: Ranges) -> Expr:
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


def _comparison(call: Call, name: str, first: Expr, second: Expr, known: Ranges) -> Expr:
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
