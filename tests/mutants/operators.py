"""Operators dropped, operators swapped, operands in the wrong order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kernelgen.composite.description import Tensor
from kernelgen.composite.document import IN_PLACE, Document, Operation
from kernelgen.tensor.attrs import Attrs
from tests.mutants.mutant import Mutant, changed, named, reordered
from tests.mutants.swaps import ORDERED, SWAPS

CARRIERS = frozenset({"TensorMove", "Reshape", *(op.name for op in IN_PLACE)})
"""Operators that a dropped one would turn into: they pass one operand on."""


def dropped(desc: Document) -> Iterator[Mutant]:
    """The result is an operand of its shape and data type."""
    for place, op in enumerate(desc.ops):
        if len(op.outs) != 1 or op.name in CARRIERS:
            continue
        for operand, number in _first_mentions(op):
            if (operand.shape, operand.dtype, operand.layout) == (op.out.shape, op.out.dtype, op.out.layout):
                move = Operation("TensorMove", (operand,), op.outs)
                yield from changed(desc, place, "dropped", f"operand {number} passes through", move)


def unmoved(desc: Document) -> Iterator[Mutant]:
    """A transposition that leaves the elements in the order in which they were."""
    for place, op in enumerate(desc.ops):
        if op.name == "Transpose":
            shape = Attrs.of(shape=op.out.shape)
            yield from changed(desc, place, "dropped", "elements stay", replace(op, name="Reshape", attrs=shape))


def swapped(desc: Document) -> Iterator[Mutant]:
    """Another operator on the same operands."""
    for place, op in enumerate(desc.ops):
        for name in SWAPS.get(op.name, ()):
            yield from changed(desc, place, "swapped", name, named(op, name))


def reversed_operands(desc: Document) -> Iterator[Mutant]:
    """Operands of an operator that is not commutative in the wrong order."""
    for place, op in enumerate(desc.ops):
        order = ORDERED.get(op.name)
        if order is not None and len(order) == len(op.args):
            yield from changed(desc, place, "swapped", f"operands {list(order)}", reordered(op, order))


def _first_mentions(op: Operation) -> Iterator[tuple[Tensor, int]]:
    """Every operand once, with its number; constants are no operands that a result could be taken from."""
    seen: set[str] = set()
    for number, operand in enumerate(op.args):
        if operand.value is None and operand.name not in seen:
            seen.add(operand.name)
            yield operand, number
