"""All accesses inside of a statement, each with what the variables of the loops around it may be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kernelgen.nest import nodes as n
from kernelgen.nest.ranges import Range, values_of
from kernelgen.nest.walk import AROUND, accesses_of
from kernelgen.system.named_tuples import NamedTuple


class Access(NamedTuple):
    """A buffer's name, the place, and the ranges of the variables there: loops beside each other may share names."""

    buffer: str
    place: tuple[n.Index, ...]
    known: Mapping[str, Range]


def reached(part: n.Statement, known: Mapping[str, Range] = {}, first: int | None = None) -> Iterator[Access]:
    """Every access of ``part``, where variables around it are ``known``; ``first`` is the only value of the outermost loop, if
    it is given."""
    for buffer, index in accesses_of(part):
        yield Access(buffer.name, index, known)
    if isinstance(part, n.For):
        known = {**known, part.var: values_of(part, known) if first is None else Range(first, first)}
    inside = part.statements if isinstance(part, n.Block) else part.body.statements if isinstance(part, AROUND) else ()
    for inner in inside:
        yield from reached(inner, known)
