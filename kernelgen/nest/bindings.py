"""Which bindings statements read, and which nobody reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.walk import loads, subexpressions


def needed(parts: Sequence[n.Statement]) -> Sequence[n.Statement]:
    """The statements without bindings that are not read any more."""
    read, kept = set[str](), list[n.Statement]()
    for part in reversed(parts):
        if not isinstance(part, n.Let) or part.name in read:
            kept.insert(0, part)
            read.update(names_read(part))
    return kept


def names_read(part: n.Statement) -> Iterator[str]:
    """The bindings that a statement reads."""
    if isinstance(part, n.Let | n.Store | n.Accumulate):
        yield from names_in(part.value)
        for place in () if isinstance(part, n.Let) else part.index:
            yield from ix.references(place)


def names_in(expr: n.Expr) -> Iterator[str]:
    """The bindings that an expression reads."""
    places = [index for load in loads(expr) for index in load.index]
    for each in subexpressions(expr):
        if isinstance(each, n.Ref):
            yield each.name
        elif isinstance(each, n.IndexValue):
            places.append(each.index)
    for place in places:
        yield from ix.references(place)
