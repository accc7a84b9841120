"""Terms that count only inside of an image cost nothing: loops run over those that do.

    for j in 0..56 step 14 {                              for j in 0..1 step 14 { ... }          the borders of rows are known
      for a in 0..3 {                                     for j in 14..42 step 14 {
        s += select(0 <= i + a - 1 < 56 and         ->      for a in max(0, 1 - i)..min(3, 57 - i) {
                    0 <= j + 2 - 1 < 56, x * w, 0)            s += x[i + a - 1, j + 1] * w
      }                                                     }
    }                                                     }; for j in 42..56 step 14 { ... }

A loop over terms begins and ends where all its terms begin and end to count. Loops over tiles are taken apart where a
comparison has another outcome, and what does not count at all goes.

Legality: what is left out adds the neutral element; pieces of a loop run the same iterations in the same order. Places were
clamped, and a clamp goes where the loop's new bounds keep the place inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.neutral import neutral_element
from kernelgen.nest.ranges import Range, range_of
from kernelgen.nest.substitute import renamed
from kernelgen.nest.walk import map_expressions, statements
from kernelgen.transforms.common.split_index_sets import comparisons, first_values, settled

MOST_PIECES = 5
"""Of one loop: each has a copy of its body."""

Ranges = Mapping[str, Range]


def borders(nest: n.Nest) -> n.Nest:
    """The nest with such loops narrowed and in pieces."""
    return replace(nest, body=_block(nest.body, {}))


def _block(block: n.Block, known: Ranges) -> n.Block:
    parts: list[n.Statement] = []
    for part in block.statements:
        if isinstance(part, n.For) and any(_reduces_windows(inner) for inner in statements(part)):
            parts += [_inside(piece, known) for piece in _pieces(part, known)]
        elif isinstance(part, n.If):
            parts.append(replace(part, body=_block(part.body, known)))
        else:
            parts.append(part)
    return n.Block(tuple(parts))


def _reduces_windows(part: n.Statement) -> bool:
    """Whether it is a vector loop of sums of its own for each lane, some of which count only inside of an image."""
    if not isinstance(part, n.For) or part.kind is not n.LoopKind.VECTOR:
        return False
    sums = [inner for inner in statements(part.body) if isinstance(inner, n.Accumulate)]
    is_own = all(any(part.var in ix.variables(at) for at in each.index) for each in sums)
    return is_own and any(_guards(each) for each in sums)


def _inside(loop: n.For, known: Ranges) -> n.For:
    """A piece with all that its iterations decide, and its inner loops narrowed."""
    within = {**known, loop.var: _values(loop, known)}
    if loop.kind is n.LoopKind.VECTOR:
        return replace(loop, body=n.Block(tuple(_counting(settled(part, within) for part in loop.body.statements))))
    loop = replace(loop, body=_block(loop.body, within))
    return _narrowed(loop) if loop.kind is n.LoopKind.SERIAL and loop.step == 1 else loop


def _counting(parts: Iterator[n.Statement]) -> Iterator[n.Statement]:
    """Without what accumulates the neutral element."""
    for part in parts:
        if not (isinstance(part, n.Accumulate) and part.value == neutral_element(part.function, part.buffer.dtype)):
            yield part


def _values(loop: n.For, known: Ranges) -> Range:
    """What the variable of a loop is: the last one is whole steps from the first."""
    low, high = range_of(loop.lower, known), range_of(loop.upper, known).high
    if high is None or low.low is None or low.high != low.low:
        return Range(low.low, None if high is None else high - 1)
    return Range(low.low, low.low + (high - 1 - low.low) // loop.step * loop.step)


# ---------------------------------------------------------------- tiles


def _pieces(loop: n.For, known: Ranges) -> list[n.For]:
    """A loop over tiles, taken apart at the tiles in which a comparison changes its outcome."""
    lower, upper = loop.lower, loop.upper
    if loop.kind is not n.LoopKind.SERIAL or loop.step == 1:
        return [loop]
    if isinstance(lower, n.Num) and not isinstance(upper, n.Num):
        return _open_pieces(loop, lower.value, known)
    if not (isinstance(lower, n.Num) and isinstance(upper, n.Num)) or loop.step >= upper.value - lower.value:
        return [loop]
    within = {**known, loop.var: _values(loop, known)}
    inside = list(statements(loop.body))
    for part in inside:
        if isinstance(part, n.For):
            within[part.var] = _values(part, within)
    bounds = {bound for part in inside for bound in comparisons(part)}
    first = {cut for place, bound in bounds for cut in first_values(place, bound, loop, within)}
    steps = {-(-(cut - lower.value) // loop.step) * loop.step + lower.value for cut in first}
    cuts = sorted(cut for cut in steps if lower.value < cut < upper.value)
    if not cuts or len(cuts) >= MOST_PIECES:
        return [loop]
    ends = (lower.value, *cuts, upper.value)
    return [_piece(loop, low, high, number) for number, (low, high) in enumerate(pairwise(ends))]


def _piece(loop: n.For, low: int, high: int, number: int) -> n.For:
    return _between(loop, n.Num(low), n.Num(high), number)


def _between(loop: n.For, low: n.Index, high: n.Index, number: int) -> n.For:
    body = renamed(loop.body, f"_{loop.var}_{number}") if number else loop.body
    return replace(loop, lower=low, upper=high, body=body)


def _open_pieces(loop: n.For, lower: int, known: Ranges) -> list[n.For]:
    """A loop over tiles of a row of open length: its first tile, those of which all windows are inside, and those behind.

    With ``last`` the first tile that has a window outside, ``[lower, lower + s)``, ``[lower + s, last)``, ``[last, upper)``
    in steps of ``s`` are the same iterations in the same order, since ``last`` is whole steps from ``lower``, or the upper end.
    """
    within, inside = {**known, loop.var: Range(lower + loop.step, None)}, list(statements(loop.body))
    inner = {part.var: _values(part, within) for part in inside if isinstance(part, n.For)}
    guards = [guard for guard in dict.fromkeys(each for part in inside for each in _guards(part))
              if loop.var in ix.variables(guard.place)]  # fmt: skip
    ends = [guard.reached(inner).limit(loop.var) for guard in guards if not guard.is_least]
    begins = [guard.begins({**within, **inner}) for guard in guards if guard.is_least]
    limits = [end for end in ends if end is not None and not ix.variables(end) & {loop.var, *inner}]
    if not limits or len(limits) < len(ends) or not all(begins):
        return [loop]
    first = n.Num(lower + loop.step)
    tiles = ix.floor_divide(
        ix.add(ix.subtract(reduce(ix.minimum, limits), first), n.Num(loop.step - 1)), n.Num(loop.step)
    )
    last = ix.minimum(ix.add(first, ix.multiply(ix.maximum(tiles, n.Num(0)), n.Num(loop.step))), loop.upper)
    middle = _between(loop, first, last, 1)
    return [
        _between(loop, loop.lower, ix.minimum(first, loop.upper), 0),
        replace(middle, body=_without(middle.body, guards)),
        _between(loop, ix.maximum(last, ix.minimum(first, loop.upper)), loop.upper, 2),
    ]


# ---------------------------------------------------------------- terms


@dataclass(frozen=True)
class _Guard:
    """``place >= bound`` where it ``is_least``, else ``place < bound``."""

    place: n.Index
    bound: n.Index
    is_least: bool

    def begins(self, known: Ranges) -> bool:
        """Whether variables in these ranges are never before the first place that fulfils it."""
        low = range_of(self.place, known).low
        return low is not None and isinstance(self.bound, n.Num) and low >= self.bound.value

    def reached(self, inner: Ranges) -> _Guard:
        """The guard of the last place that it asks for while inner variables run through these values; as it is where
        that is not known.
        """
        last = {
            name: n.Num(values.high) for name, values in inner.items()
            if values.high is not None and (ix.stride(self.place, name) or 0) > 0
        }  # fmt: skip
        return replace(self, place=ix.substitute(self.place, last))

    def limit(self, variable: str) -> n.Index | None:
        """The first iteration of a loop that fulfils it, or the one after the last; None where that does not follow."""
        step = ix.stride(self.place, variable)
        if step is None or step < 1:
            return None
        rest = ix.substitute(self.place, {variable: n.Num(0)})
        room = ix.subtract(self.bound, rest)
        return room if step == 1 else ix.floor_divide(ix.add(room, n.Num(step - 1)), n.Num(step))


def _narrowed(loop: n.For) -> n.For:
    """A loop over terms, from the first to the last one that counts."""
    inside = list(statements(loop.body))
    sums = [part for part in inside if isinstance(part, n.Accumulate)]
    if not sums or not all(isinstance(part, n.Accumulate | n.Let | n.For | n.Block) for part in inside):
        return loop
    common = dict.fromkeys(_guards(sums[0]))
    for part in sums[1:]:
        common = {guard: None for guard in common if guard in dict.fromkeys(_guards(part))}
    inner = {part.var for part in inside if isinstance(part, n.For)}
    lower, upper, met = loop.lower, loop.upper, list[_Guard]()
    for guard in common:
        limit = guard.limit(loop.var)
        if limit is None or inner & ix.variables(limit):
            continue
        met.append(guard)
        lower, upper = (ix.maximum(limit, lower), upper) if guard.is_least else (lower, ix.minimum(limit, upper))
    return replace(loop, lower=lower, upper=upper, body=_without(loop.body, met)) if met else loop


def _without(block: n.Block, met: list[_Guard]) -> n.Block:
    """The block without comparisons that hold, and without clamps of places that are inside."""
    held = {guard.place for guard in met if guard.is_least and guard.bound == n.Num(0)}
    extents = {guard: ix.to_dim(guard.bound) for guard in met if not guard.is_least and guard.place in held}
    clamps = {ix.clamp(guard.place, extent): guard.place for guard, extent in extents.items() if extent is not None}

    def edit(expr: n.Expr) -> n.Expr:
        match expr:
            case n.Load(buffer, index):
                return n.Load(buffer, tuple(clamps.get(at, at) for at in index))
            case n.Call("select", (condition, value, _)) if guards_of(condition) and set(guards_of(condition)) <= set(
                met
            ):
                return value
            case n.Call("logical_and", (first, second)):
                kept = [each for each in (first, second) if not _is_met(each, met)]
                return expr if len(kept) == 2 else kept[0] if kept else first
            case _:
                return expr

    return _mapped(block, edit)


def _mapped(block: n.Block, edit: Callable[[n.Expr], n.Expr]) -> n.Block:
    parts = [
        replace(part, body=_mapped(part.body, edit)) if isinstance(part, n.For) else map_expressions(part, edit)
        for part in block.statements
    ]
    return n.Block(tuple(parts))


def _is_met(condition: n.Expr, met: list[_Guard]) -> bool:
    found = guards_of(condition)
    return bool(found) and set(found) <= set(met)


def _guards(part: n.Statement) -> list[_Guard]:
    """The comparisons of places that all must hold for a term to count."""
    if not isinstance(part, n.Accumulate):
        return []
    match part.value:
        case n.Call("select", (condition, _, other)) if other == neutral_element(part.function, part.buffer.dtype):
            return guards_of(condition)
        case _:
            return []


def guards_of(condition: n.Expr) -> list[_Guard]:
    """The comparisons that a condition is made of."""
    match condition:
        case n.Call("logical_and", (first, second)):
            return [*guards_of(first), *guards_of(second)]
        case n.Call("greater_equal", (n.IndexValue(place), n.Literal(value))):
            return [_Guard(place, n.Num(int(value)), True)]
        case n.Call("less", (n.IndexValue(place), n.Literal(value))):
            return [_Guard(place, n.Num(int(value)), False)]
        case n.Call("less", (n.IndexValue(place), n.IndexValue(bound))):
            return [_Guard(place, bound, False)]
        case _:
            return []
