"""A kernel's statements made ready: expressions are functions, prototypes are looked up, once for all cores and turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from kernelgen.ascendc.expressions import Convert, Expression, Name, Number, Unary
from kernelgen.ascendc.instructions import (
    Argument,
    Call,
    Enumerator,
    For,
    If,
    Let,
    MaskBits,
    SetValue,
    Statement,
    Struct,
    TensorRef,
    statements_in,
)
from kernelgen.ascendc.intrinsics import Form, Slot, form_of
from kernelgen.ascendc.pipes import named_pipe
from kernelgen.simulators.ascendc.core.scalars import BadScalar, Evaluate, Scope, Value, evaluator, whole
from kernelgen.system.cached_property import cached_property

Raw = int | float | str | tuple[int | float | str, ...]
"""An argument's value before tensors are looked up: a tensor's is its offset, a struct's are its fields in order."""


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop."""

    line: int
    variable: str
    start: Evaluate
    stop: Evaluate
    step: Evaluate
    body: tuple[Decoded, ...]


@dataclass(frozen=True, eq=False)
class Branch:
    """A branch."""

    line: int
    condition: Evaluate
    then: tuple[Decoded, ...]
    otherwise: tuple[Decoded, ...]


@dataclass(frozen=True, eq=False)
class Binding:
    """A scalar that gets its value."""

    line: int
    name: str
    is_integer: bool
    value: Evaluate


@dataclass(frozen=True, eq=False)
class Element:
    """The scalar unit writes an element."""

    line: int
    tensor: str
    index: Evaluate
    value: Evaluate


@dataclass(frozen=True, eq=False)
class Operation:
    """A call. ``known`` has its arguments with those that change left open; ``open`` are their positions and values."""

    line: int
    call: Call
    form: Form
    number: int
    known: tuple[Raw, ...]
    open: tuple[tuple[int, Callable[[Scope], Raw]], ...]

    @cached_property
    def pipe(self) -> str:
        """The pipe of a barrier; ``ALL`` for all of them."""
        return named_pipe(self.call)

    def raw(self, scope: Scope) -> tuple[Raw, ...]:
        """The values of the arguments. Raises BadScalar."""
        if not self.open:
            return self.known
        values = list(self.known)
        for position, value in self.open:
            values[position] = value(scope)
        return tuple(values)

    def keeps(self, raw: Sequence[Raw]) -> bool:
        """Whether equal arguments mean the same call: floats may be equal without being the same."""
        return not any(isinstance(raw[position], float) for position, _ in self.open)


@dataclass(frozen=True, eq=False)
class Declaration:
    """A tensor or a mask."""

    line: int
    statement: Statement


Decoded = Loop | Branch | Binding | Element | Operation | Declaration


def decode(body: Sequence[Statement]) -> tuple[Decoded, ...]:
    """The statements of a kernel's body. Raises AscendError for a call that is not in the subset."""
    masks = frozenset(statement.name for statement in statements_in(body) if isinstance(statement, MaskBits))
    return _decoded(body, masks, count())


def _decoded(body: Sequence[Statement], masks: frozenset[str], numbers: Iterator[int]) -> tuple[Decoded, ...]:
    return tuple(_statement(statement, masks, numbers) for statement in body)


def _statement(statement: Statement, masks: frozenset[str], numbers: Iterator[int]) -> Decoded:
    line = statement.line
    match statement:
        case For(variable, start, stop, step, body):
            inside = _decoded(body, masks, numbers)
            return Loop(line, variable, evaluator(start), evaluator(stop), evaluator(step), inside)
        case If(condition, then, otherwise):
            parts = (_decoded(part, masks, numbers) for part in (then, otherwise))
            return Branch(line, evaluator(condition), *parts)
        case Let(name, dtype, value):
            return Binding(line, name, dtype.is_integer, evaluator(value))
        case SetValue(tensor, index, value):
            return Element(line, tensor, evaluator(index), evaluator(value))
        case Call():
            return _operation(statement, masks, next(numbers))
        case _:
            return Declaration(line, statement)


def _operation(call: Call, masks: frozenset[str], number: int) -> Operation:
    form = form_of(call)
    known: list[Raw] = []
    still_open: list[tuple[int, Callable[[Scope], Raw]]] = []
    for position, (slot, argument) in enumerate(zip(form.slots, call.arguments, strict=True)):
        value = _argument(slot, argument, masks)
        known.append(0 if callable(value) else value)
        if callable(value):
            still_open.append((position, value))
    return Operation(call.line, call, form, number, tuple(known), tuple(still_open))


def _argument(slot: Slot, argument: Argument, masks: frozenset[str]) -> Raw | Callable[[Scope], Raw]:
    """The value of an argument, or what gives it."""
    match argument:
        case TensorRef(_, offset):
            return _integer(offset)
        case Enumerator(name):
            return name
        case Struct(_, values):
            fields = tuple(one.name if isinstance(one, Enumerator) else _scalar(one) for one in values)
            if not any(callable(one) for one in fields):
                return tuple(one for one in fields if not callable(one))
            return lambda scope: tuple(one(scope) if callable(one) else one for one in fields)
        case Name(name) if slot.kind == "mask" and name in masks:
            return name
        case _:
            return _scalar(argument)


def _scalar(expression: Expression) -> Value | Evaluate:
    """The value where no name decides it, else what gives it."""
    match expression:
        case Number(value):
            return value
        case Unary("-", Number(value)):
            return -value
        case Convert(_, Number()):
            return evaluator(expression)(Scope({}, {}, _nothing))
        case _:
            return evaluator(expression)


def _nothing(tensor: str, index: int) -> Value:
    raise BadScalar(f"{tensor}[{index}] has no value yet")


def _integer(expression: Expression) -> int | Callable[[Scope], int]:
    """The same for an integer."""
    value = _scalar(expression)
    return (lambda scope: whole(value(scope))) if callable(value) else whole(value)
