"""A description with one fault in it, and the ways to put one operator in the place of another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kernelgen.composite.check import check
from kernelgen.composite.description import KernelDesc, OpDesc
from kernelgen.errors import DescError


@dataclass(frozen=True)
class Mutant:
    """``what`` was done, where: operator ``place`` of the description, ``name`` its operator."""

    kind: str
    what: str
    desc: KernelDesc


def changed(desc: KernelDesc, place: int, kind: str, what: str, *instead: OpDesc) -> Iterator[Mutant]:
    """The mutant with these operators in the place of one; none where they are no sound description."""
    ops = (*desc.ops[:place], *instead, *desc.ops[place + 1 :])
    try:
        fault = check(replace(desc, ops=ops))
    except DescError:
        return
    yield Mutant(kind, f"{place} {desc.ops[place].name}: {what}", fault)


def named(op: OpDesc, name: str) -> OpDesc:
    """The operator under another name, of the same operands and attributes."""
    return replace(op, name=name)


def reordered(op: OpDesc, order: Sequence[int]) -> OpDesc:
    """The operator with its operands in another order."""
    return replace(op, inputs=tuple(op.inputs[place] for place in order))
