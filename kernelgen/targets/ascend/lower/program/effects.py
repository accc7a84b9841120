"""Which tensors a statement touches, and how: what passes over tile programs ask of a statement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernelgen.ascendc.expressions import Binary, Choice, Convert, Expression, GetValue, Number, Unary
from kernelgen.ascendc.instructions import (
    Argument,
    Call,
    Enumerator,
    Let,
    SetValue,
    Statement,
    Struct,
    TensorRef,
)
from kernelgen.ascendc.intrinsics import WRITE, form_of


@dataclass(frozen=True)
class Use:
    """A tensor from an element on, read or written; ``scalar`` uses are one element by the scalar unit."""

    tensor: str
    offset: Expression
    write: bool
    scalar: bool = False


def uses_of(statement: Statement) -> Iterator[Use]:
    """What a statement touches itself: loops and branches nothing."""
    match statement:
        case Call():
            form = form_of(statement)
            for slot, argument in zip(form.slots, statement.arguments, strict=True):
                if isinstance(argument, TensorRef):
                    yield Use(argument.tensor, argument.offset, slot.role == WRITE)
        case Let(value=value):
            yield from scalar_reads(value)
        case SetValue(tensor, index, value):
            yield from scalar_reads(value)
            yield Use(tensor, index, write=True, scalar=True)
        case _:
            pass


def scalar_reads(expression: Expression) -> Iterator[Use]:
    """The elements that the scalar unit reads for an expression."""
    match expression:
        case GetValue(tensor, index):
            yield Use(tensor, index, write=False, scalar=True)
        case Binary(_, left, right):
            yield from scalar_reads(left)
            yield from scalar_reads(right)
        case Unary(_, operand) | Convert(_, operand):
            yield from scalar_reads(operand)
        case Choice(condition, then, otherwise):
            for part in (condition, then, otherwise):
                yield from scalar_reads(part)
        case _:
            pass


def is_fixed(statement: Statement) -> bool:
    """Whether it touches the same places in every turn: a call without scalars that have names."""
    return isinstance(statement, Call) and all(_is_known(argument) for argument in statement.arguments)


def _is_known(argument: Argument) -> bool:
    match argument:
        case TensorRef(offset=offset):
            return isinstance(offset, Number)
        case Expression():
            return isinstance(argument, Number)
        case Struct(values=values):
            return all(isinstance(value, Number | Enumerator) for value in values)
        case _:
            return True
