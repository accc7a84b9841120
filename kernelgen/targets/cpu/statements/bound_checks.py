"""Where a place that grows lane by lane is inside of bounds: comparisons of such places, and loads that are clamped.

    x[min(max(j - 1, 0), 41)], j = 16 ..   ->   lanes with 0 <= j - 1 <= 41 in one masked load, the others take an edge

Lanes are compared as 32-bit numbers with a distance that is computed once, not as 64-bit places with each other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelgen.nest.index import is_by_data, stride
from kernelgen.nest.nodes import Expr, Index, IndexBinary, IndexOp, IndexValue, Literal, Num
from kernelgen.targets.cpu.text.indices import index_value
from kernelgen.targets.cpu.text.scope import Frame
from kernelgen.targets.cpu.text.values import Value, iota


@dataclass(frozen=True)
class Clamped:
    """``min(max(place, lower), upper)``, where the place grows by one from lane to lane and the bounds stay."""

    place: Index
    lower: Index
    upper: Index


def clamped(frame: Frame, index: Index) -> Clamped | None:
    """The parts of a clamped index along the lanes, else None."""
    match index:
        case IndexBinary(IndexOp.MIN, IndexBinary(IndexOp.MAX, place, lower), upper):
            is_along = _step(frame, place) == 1 and _step(frame, lower) == 0 and _step(frame, upper) == 0
            return Clamped(place, lower, upper) if is_along else None
        case _:
            return None


def at_least(frame: Frame, place: Index, bound: Index) -> Value:
    """The lanes of ``frame`` whose ``place``, which grows by one from lane to lane, is at least the ``bound``."""
    return _numbers(frame).compare("sge", _distance(frame, place, bound))


def at_most(frame: Frame, place: Index, bound: Index) -> Value:
    """The lanes of ``frame`` whose ``place`` is at most the ``bound``."""
    return ~at_least(frame, place, _next(bound))


def comparison(frame: Frame, function: str, left: Expr, right: Expr) -> Value | None:
    """The lanes of ``frame`` where ``function`` compares a place along the lanes with a fixed one, ``left`` with
    ``right``; None when it is another comparison.
    """
    place, bound = _index(left), _index(right)
    if frame.lanes is None or place is None or bound is None:
        return None
    if _step(frame, place) != 1 or _step(frame, bound) != 0:
        return None
    match function:
        case "greater_equal":
            return at_least(frame, place, bound)
        case "greater":
            return at_least(frame, place, _next(bound))
        case "less":
            return ~at_least(frame, place, bound)
        case "less_equal":
            return at_most(frame, place, bound)
        case _:
            return None


def _index(expr: Expr) -> Index | None:
    match expr:
        case IndexValue(index, dtype) if dtype.name == "int64":
            return index
        case Literal(int() as value, dtype) if dtype.name == "int64":
            return Num(value)
        case _:
            return None


def _step(frame: Frame, index: Index) -> int | None:
    if frame.lanes is None or is_by_data(index):
        return None
    return stride(index, frame.lanes.variable)


def _next(bound: Index) -> Index:
    return IndexBinary(IndexOp.ADD, bound, Num(1))


def _distance(frame: Frame, place: Index, bound: Index) -> Value:
    """How many lanes lie before the bound: from none to all."""
    assert frame.lanes is not None
    lanes = frame.lanes
    first = replace(frame, lanes=None, variables={**frame.variables, lanes.variable: lanes.start})
    before = index_value(first, bound) - index_value(first, place)
    return before.intrinsic("smax", 0).intrinsic("smin", lanes.count).convert("trunc", "i32")


def _numbers(frame: Frame) -> Value:
    assert frame.lanes is not None
    return iota(frame.function, "i32", frame.lanes.count)
