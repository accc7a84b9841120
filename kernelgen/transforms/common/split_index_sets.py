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
ranges of the variables decide them. Bindings get a name of their own in every piece; loops that allocate are left in one.

    block b in 0..417 {                               block b in 0..417 {
      y[b] = select(b < 416, x[min(b, 415)], 0)  ->     if b < 416 { y[b] = x[b] }
    }                                                   if 416 <= b { y[b] = 0 }
                                                      }

Loops that are dealt to cores stay one: where a comparison changes its outcome, a core takes the branch of its iteration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from kernelgen.nest import nodes as n
from kernelgen.nest.index import add, binary, stride, substitute
from kernelgen.nest.ranges import Range, range_of, values_of
from kernelgen.nest.substitute import renamed
from kernelgen.nest.walk import accesses_of, calls_of, map_expressions, statements
from kernelgen.tensor.dtypes import BOOL

MOST_CUTS = 4
"""Of one loop: each is a copy of its body more."""
Ranges = Mapping[str, Range]
FIRST_ABOVE = {"less": 0, "greater_equal": 0, "less_equal": 1, "greater": 1}
"""Comparison with a number -> how far above the number the place has the other outcome."""
SWAPPED = {"less": "greater", "greater": "less", "less_equal": "greater_equal", "greater_equal": "less_equal"}


def peel(nest: n.Nest) -> n.Nest:
    """The nest with such loops in pieces."""
    return replace(nest, body=_block(nest.body, {}))


def _block(block: n.Block, known: Ranges) -> n.Block:
    """A block where variables have these ranges, outer loops taken apart before inner ones."""
    parts: list[n.Statement] = []
    for part in block.statements:
        match part:
            case n.For(kind=n.LoopKind.BLOCK):
                parts.append(_guarded(part, known))
            case n.For():
                parts += [_inside(piece, known) for piece in _pieces(part, known)]
            case n.If(body=body):
                parts.append(replace(part, body=_block(body, known)))
            case n.Block():
                parts.append(_block(part, known))
            case _:
                parts.append(settled(part, known))
    return n.Block(tuple(parts))


def _inside(loop: n.For, known: Ranges) -> n.For:
    return replace(loop, body=_block(loop.body, {**known, loop.var: values_of(loop, known)}))


def _guarded(loop: n.For, known: Ranges) -> n.For:
    """A loop that is dealt to cores stays one; where it would be taken apart, each part of its iterations has a body."""
    pieces = [_inside(piece, known) for piece in _pieces(loop, known)]
    if len(pieces) == 1:
        return pieces[0]
    return replace(loop, body=n.Block(tuple(n.If(_within(piece, loop), piece.body) for piece in pieces)))


def _within(piece: n.For, loop: n.For) -> tuple[n.Compare, ...]:
    """That the variable of the loop is one of the piece."""
    place = n.Var(loop.var)
    from_below = () if piece.lower == loop.lower else (n.Compare("<=", piece.lower, place),)
    return from_below if piece.upper == loop.upper else (*from_below, n.Compare("<", place, piece.upper))


def _pieces(loop: n.For, known: Ranges) -> list[n.For]:
    lower, upper = loop.lower, loop.upper
    inside = list(statements(loop.body))
    if not (isinstance(lower, n.Num) and isinstance(upper, n.Num)) or loop.step != 1:
        return [loop]
    within = {**known, loop.var: values_of(loop, known)}
    for part in inside:
        if isinstance(part, n.For):
            within[part.var] = values_of(part, within)
    cuts = _cuts(loop, inside, within)
    if len(cuts) > MOST_CUTS or any(isinstance(part, n.Alloc) for part in inside):
        return [loop]
    ends = (lower.value, *sorted(cuts), upper.value)
    return [_piece(loop, low, high, number) for number, (low, high) in enumerate(pairwise(ends))]


def _piece(loop: n.For, low: int, high: int, number: int) -> n.For:
    body = renamed(loop.body, f"_{loop.var}_{number}") if number else loop.body
    return replace(loop, lower=n.Num(low), upper=n.Num(high), body=body)


# ---------------------------------------------------------------- where


def _cuts(loop: n.For, inside: Sequence[n.Statement], within: Ranges) -> set[int]:
    """Where a loop is taken apart; at carries only if it is made of lanes or rows, and there are few."""
    bounds = {bound for part in inside for bound in comparisons(part)}
    if loop.kind is not n.LoopKind.BLOCK:  # a core computes a clamped place once, for a whole tile
        bounds |= {bound for part in inside for bound in _clamped_places(part)}
    cuts = {cut for at, bound in bounds for cut in first_values(at, bound, loop, within)}
    if loop.kind not in (n.LoopKind.VECTOR, n.LoopKind.ROWS):
        return cuts
    indices = (at for part in inside for _, index in accesses_of(part) for at in index)
    carries = {carry for at in indices for carry in _carries(at, within)}
    more = {cut for at, carry in carries for cut in first_values(at, carry, loop, within)}
    return cuts | more if len(cuts | more) <= MOST_CUTS else cuts


def _clamped_places(part: n.Statement) -> Iterator[tuple[n.Index, int]]:
    """Places without their clamps, and from which number on a clamp has another outcome."""
    for _, index in accesses_of(part):
        for at in index:
            yield from _clamps(at)


def comparisons(part: n.Statement) -> Iterator[tuple[n.Index, int]]:
    """Places that are compared with numbers, and from which number on that has another outcome."""
    for call in calls_of(part):
        match call:
            case n.Call(name, (n.IndexValue(index), n.Literal(value))) if name in FIRST_ABOVE:
                yield index, int(value) + FIRST_ABOVE[name]
            case n.Call(name, (n.Literal(value), n.IndexValue(index))) if name in FIRST_ABOVE:
                yield index, int(value) + FIRST_ABOVE[SWAPPED[name]]
            case _:
                pass


def _clamps(index: n.Index) -> Iterator[tuple[n.Index, int]]:
    if not isinstance(index, n.IndexBinary):
        return
    yield from _clamps(index.left)
    yield from _clamps(index.right)
    if index.op in (n.IndexOp.MIN, n.IndexOp.MAX) and isinstance(index.right, n.Num):
        yield unclamped(index.left), index.right.value + (index.op is n.IndexOp.MIN)


def _carries(index: n.Index, within: Ranges) -> Iterator[tuple[n.Index, int]]:
    """Places of which there are digits, and where those begin anew."""
    if not isinstance(index, n.IndexBinary):
        return
    yield from _carries(index.left, within)
    yield from _carries(index.right, within)
    if index.op in (n.IndexOp.DIV, n.IndexOp.MOD) and isinstance(index.right, n.Num):
        first, last = _quotients(index.left, index.right.value, within)
        if first is not None and last is not None and last - first <= MOST_CUTS:
            yield from ((index.left, number * index.right.value) for number in range(first + 1, last + 1))


def _quotients(place: n.Index, divisor: int, known: Ranges) -> tuple[int | None, int | None]:
    """The least and the greatest of a place's quotients."""
    found = range_of(place, known)
    low, high = (None if end is None else end // divisor for end in (found.low, found.high))
    return low, high


def first_values(place: n.Index, bound: int, loop: n.For, within: Ranges) -> Iterator[int]:
    """The first iterations inside of a ``loop`` from which on the ``place`` may be, and certainly is, ``bound`` or more, where
    variables are ``within`` ranges.

    None where the rest of the place moves by as much as the variable: the outcome would still be open in most pieces.
    """
    step, rest = stride(place, loop.var), range_of(substitute(place, {loop.var: n.Num(0)}), within)
    own = within[loop.var]
    if step is None or step < 1 or rest.low is None or rest.high is None or rest.high - rest.low >= step:
        return
    for end in (rest.high, rest.low):
        first = -(-(bound - end) // step)
        if own.low is not None and own.high is not None and own.low < first <= own.high:
            yield first


def unclamped(index: n.Index) -> n.Index:
    """The place inside its clamps."""
    while (
        isinstance(index, n.IndexBinary)
        and index.op in (n.IndexOp.MIN, n.IndexOp.MAX)
        and isinstance(index.right, n.Num)
    ):
        index = index.left
    return index


# ---------------------------------------------------------------- one piece


def settled(part: n.Statement, known: Ranges) -> n.Statement:
    """A statement that holds no others, with all that the ranges decide."""

    def edit(expr: n.Expr) -> n.Expr:
        match expr:
            case n.Load(buffer, index):
                return n.Load(buffer, tuple(_settled(at, known) for at in index))
            case n.IndexValue(index, dtype):
                return n.IndexValue(_settled(index, known), dtype)
            case n.Call():
                return _decided(expr, known)
            case _:
                return expr

    edited = map_expressions(part, edit)
    if isinstance(edited, n.Store | n.Accumulate):
        return replace(edited, index=tuple(_settled(at, known) for at in edited.index))
    return edited


def _settled(index: n.Index, known: Ranges) -> n.Index:
    """The place without clamps and digits that the ranges decide."""
    if not isinstance(index, n.IndexBinary):
        return index
    left, right = _settled(index.left, known), _settled(index.right, known)
    if index.op in (n.IndexOp.MIN, n.IndexOp.MAX):
        smaller = _compared(left, right, known)
        if smaller is not None:
            return left if smaller == (index.op is n.IndexOp.MIN) else right
    if index.op in (n.IndexOp.DIV, n.IndexOp.MOD) and isinstance(right, n.Num):
        first, last = _quotients(left, right.value, known)
        if first is not None and first == last:
            return n.Num(first) if index.op is n.IndexOp.DIV else add(left, n.Num(-first * right.value))
    return binary(index.op, left, right)


def _compared(left: n.Index, right: n.Index, known: Ranges) -> bool | None:
    """Whether ``left <= right`` everywhere; None where it is so in some places only."""
    a, b = range_of(left, known), range_of(right, known)
    if a.high is not None and b.low is not None and a.high <= b.low:
        return True
    return False if a.low is not None and b.high is not None and a.low >= b.high else None


def _decided(call: n.Call, known: Ranges) -> n.Expr:
    """A comparison of places, and what follows from it, where the ranges decide it."""
    match call:
        case n.Call("greater_equal" | "greater" | "less" | "less_equal" as name, (first, second)):
            return _comparison(call, name, first, second, known)
        case n.Call("logical_and", (n.Literal(value), other)) | n.Call("logical_and", (other, n.Literal(value))):
            return other if value else n.Literal(False, BOOL)
        case n.Call("select", (n.Literal(value), first, second)):
            return first if value else second
        case _:
            return call


def _comparison(call: n.Call, name: str, first: n.Expr, second: n.Expr, known: Ranges) -> n.Expr:
    a, b = _place(first), _place(second)
    if a is None or b is None:
        return call
    if name in ("greater_equal", "greater"):
        a, b = b, a
    one, other = range_of(a, known), range_of(b, known)
    strict = name in ("greater", "less")
    if one.high is not None and other.low is not None and one.high + strict <= other.low:
        return n.Literal(True, BOOL)
    if one.low is not None and other.high is not None and one.low >= other.high + (not strict):
        return n.Literal(False, BOOL)
    return call


def _place(expr: n.Expr) -> n.Index | None:
    """The place that a scalar is, a number too."""
    if isinstance(expr, n.IndexValue):
        return expr.index
    return n.Num(int(expr.value)) if isinstance(expr, n.Literal) and expr.dtype.is_integer else None
