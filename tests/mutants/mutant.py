"""A description with one fault in it, and the ways to put one operator in the place of another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kernelgen.composite.description import KernelDesc
from kernelgen.composite.document import Document, Operation
from kernelgen.composite.link import linked
from kernelgen.errors import DescError


@dataclass(frozen=True)
class Mutant:
    """``what`` was done, where: operator ``place`` of the description, ``name`` its operator."""

    kind: str
    what: str
    desc: KernelDesc


def changed(desc: Document, place: int, kind: str, what: str, *instead: Operation) -> Iterator[Mutant]:
    """The mutant with these operators in the place of one; none where they are no sound description."""
    ops = (*desc.ops[:place], *instead, *desc.ops[place + 1 :])
    try:
        fault = linked(replace(desc, ops=ops))
    except DescError:
        return
    yield Mutant(kind, f"{place} {desc.ops[place].name}: {what}", fault)


def named(op: Operation, name: str) -> Operation:
    """The operator under another name, of the same operands and attributes."""
    return replace(op, name=name)


def reordered(op: Operation, order: Sequence[int]) -> Operation:
    """The operator with its operands in another order."""
    return replace(op, args=tuple(op.args[place] for place in order))
