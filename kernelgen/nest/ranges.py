"""Bounds of index expressions by interval arithmetic: enough to know a sign, and whether 32 bits hold a value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kernelgen.nest.nodes import Compare, For, Index, IndexBinary, IndexOp, Num, ValueIndex, Var


@dataclass(unsafe_hash=True)
class Range:
    """The integers from ``low`` to ``high``, both included; None is no bound."""

    low: Final[int | None] = None
    high: Final[int | None] = None

    @property
    def is_nonnegative(self) -> bool:
        """Whether no value is below 0."""
        return self.low is not None and self.low >= 0

    def meets(self, other: Range) -> bool:
        """Whether both may hold one value."""
        is_below = self.high is not None and other.low is not None and self.high < other.low
        return not is_below and not (other.high is not None and self.low is not None and other.high < self.low)


def is_multiple(index: Index, factor: int) -> bool:
    """Whether the index is certainly a multiple of the factor."""
    match index:
        case Num(value):
            return value % factor == 0
        case IndexBinary(IndexOp.ADD | IndexOp.SUB, left, right):
            return is_multiple(left, factor) and is_multiple(right, factor)
        case IndexBinary(IndexOp.MUL, left, right):
            return is_multiple(left, factor) or is_multiple(right, factor)
        case _:
            return factor == 1


def range_of(index: Index, known: Mapping[str, Range]) -> Range:
    """The range of an index when each variable is in the given one; unknown variables have no bounds."""
    match index:
        case Num(value):
            return Range(value, value)
        case Var(name):
            return known.get(name, Range())
        case ValueIndex():
            return Range()
        case IndexBinary(op, left, right):
            return _combined(op, range_of(left, known), range_of(right, known))


def values_of(loop: For, known: Mapping[str, Range]) -> Range:
    """What the variable of a loop is, where those of its bounds are in ``known`` ranges: whole steps from a known first one."""
    first, high = range_of(loop.lower, known), range_of(loop.upper, known).high
    if high is None or first.low is None:
        return Range(first.low, None if high is None else high - 1)
    is_known = first.low == first.high and high > first.low
    return Range(first.low, first.low + (high - 1 - first.low) // loop.step * loop.step if is_known else high - 1)


def values_in(loops: Iterable[For], known: Mapping[str, Range] = {}) -> dict[str, Range]:
    """What the variables of loops are, outermost first; those that are ``known`` have narrower ranges than the bounds say."""
    found = dict(known)
    for loop in loops:
        if loop.var not in known:
            found[loop.var] = values_of(loop, found)
    return found


def values_left(conditions: Sequence[Compare], loops: Iterable[For]) -> dict[str, Num]:
    """The variables to which conditions inside of loops leave one value."""
    if not conditions:
        return {}
    known = values_in(loops)
    named: set[str] = set()
    for each in conditions:
        strict = int(each.op == "<")
        for one, other, is_left in ((each.left, each.right, True), (each.right, each.left, False)):
            if not isinstance(one, Var) or not isinstance(other, Num):
                continue
            named.add(one.name)
            low = other.value + strict if each.op == "==" or not is_left else None
            high = other.value - strict if each.op == "==" or is_left else None
            before = known.get(one.name, Range())
            known[one.name] = Range(_greatest(before.low, low), _least(before.high, high))
    left = ((name, known[name]) for name in sorted(named))
    return {name: Num(found.low) for name, found in left if found.low is not None and found.low == found.high}


def _combined(op: IndexOp, a: Range, b: Range) -> Range:
    match op:
        case IndexOp.ADD:
            return Range(_sum(a.low, b.low), _sum(a.high, b.high))
        case IndexOp.SUB:
            return Range(_sum(a.low, _negative(b.high)), _sum(a.high, _negative(b.low)))
        case IndexOp.MUL:
            return _product(a, b)
        case IndexOp.DIV:
            return _quotient(a, b)
        case IndexOp.MOD:
            most = None if b.high is None else b.high - 1
            return Range(0, _least(most, a.high) if a.is_nonnegative else most)
        case IndexOp.MIN:
            return Range(None if a.low is None or b.low is None else min(a.low, b.low), _least(a.high, b.high))
        case IndexOp.MAX:
            return Range(_greatest(a.low, b.low), None if a.high is None or b.high is None else max(a.high, b.high))


def _product(a: Range, b: Range) -> Range:
    if a.low is not None and a.high is not None and b.low is not None and b.high is not None:
        corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        return Range(min(corners), max(corners))
    both = a.low is not None and b.low is not None and a.low >= 0 and b.low >= 0
    return Range((a.low or 0) * (b.low or 0), None) if both else Range()


def _quotient(a: Range, b: Range) -> Range:
    """Divisors are positive: without a bound on them a quotient moves towards zero or minus one."""
    low = None if a.low is None else (a.low // (b.high or a.low + 1) if a.low >= 0 else a.low // max(b.low or 1, 1))
    high = None if a.high is None else (a.high // max(b.low or 1, 1) if a.high >= 0 else -1)
    return Range(low, high)


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _negative(a: int | None) -> int | None:
    return None if a is None else -a


def _least(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)


def _greatest(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else max(a, b)
