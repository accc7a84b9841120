"""Writes calls by name: ``make_call("Add", dst=z, first=x, second=y, count=64)``.

Names, order and kinds of arguments come from :mod:`intrinsics`; tuples become parameter structs and texts enumerators.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernelgen.ascendc.errors import AscendError
from kernelgen.ascendc.expressions import FLAGS, Expression, Flag, Number, Scalar, wrap
from kernelgen.ascendc.instructions import (
    Argument,
    Call,
    Enumerator,
    Struct,
    TensorRef,
)
from kernelgen.ascendc.intrinsics import BY_OPERATION, STRUCTS, Form, Slot
from kernelgen.tensor.dtypes import DType


@dataclass(frozen=True)
class Tensor:
    """A declared tensor; ``tensor[i]`` is an operand that begins at element ``i``."""

    name: str
    dtype: DType

    def __getitem__(self, offset: Scalar) -> TensorRef:
        return TensorRef(self.name, wrap(offset))


Given = Tensor | TensorRef | Scalar | str | Sequence[Scalar | str]
"""What ``emit`` takes for an argument."""


def make_call(operation: str, template: Sequence[str] = (), **arguments: Given) -> Call:
    """A call with its arguments by name. Raises AscendError with the prototypes of its name when none has these names."""
    forms = BY_OPERATION.get(operation, ())
    named = [form for form in forms if {slot.name for slot in form.slots} == set(arguments)]
    for form in named:
        if len(named) == 1 or all(_fits(slot, arguments[slot.name]) for slot in form.slots):
            return Call(operation, tuple(template), tuple(_argument(slot, arguments[slot.name]) for slot in form.slots))
    raise AscendError(f"{operation}({', '.join(arguments)}): no such prototype; known: {_known(forms)}")


def _fits(slot: Slot, given: Given) -> bool:
    """Whether a struct has as many fields as are given: prototypes with the same names differ in that."""
    return not isinstance(given, tuple) or len(STRUCTS.get(slot.kind, ())) == len(given)


def _known(forms: Sequence[Form]) -> str:
    return "; ".join(f"({', '.join(slot.name for slot in form.slots)})" for form in forms) or "no such operation"


def _argument(slot: Slot, given: Given) -> Argument:
    match given:
        case Tensor():
            return given[0]
        case TensorRef() | Expression():
            return given
        case str():
            return Enumerator(f"{slot.kind}::{given}")
        case int() | float():
            return Number(given)
        case _:
            return Struct(slot.kind, tuple(_field(slot.kind, name, one) for name, one in _named(slot, given)))


def _named(slot: Slot, values: Sequence[Scalar | str]) -> Iterator[tuple[str, Scalar | str]]:
    if len(values) != len(STRUCTS[slot.kind]):
        raise AscendError(f"{slot.kind} has the fields {', '.join(STRUCTS[slot.kind])}; {len(values)} are given")
    yield from zip(STRUCTS[slot.kind], values, strict=True)


def _field(struct: str, name: str, value: Scalar | str) -> Expression | Enumerator:
    if not isinstance(value, str):
        return wrap(value)
    return Flag(value) if value in FLAGS else Enumerator(f"{STRUCTS[struct][name]}::{value}")
