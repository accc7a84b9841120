"""Conversions that C++ does not make by itself: every argument gets the type that its prototype asks for.

A type parameter is deduced from each argument that has it, so a scalar must be of exactly the type of the tensors'
elements: ``Muls(t, t, static_cast<half>(2.0f), n)``. Inside of braces nothing may be lost, so what is no constant must be of
the field's type. Everything else C++ converts, but to bfloat16.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kernelgen.ascendc.expressions import (
    Binary,
    Choice,
    Convert,
    Expression,
    Field,
    Flag,
    GetValue,
    Intrinsic,
    Name,
    Number,
    Unary,
)
from kernelgen.ascendc.instructions import (
    Argument,
    Call,
    Enumerator,
    For,
    GlobalTensor,
    If,
    Kernel,
    Let,
    LocalTensor,
    MaskBits,
    SetValue,
    Statement,
    Struct,
    TensorRef,
)
from kernelgen.ascendc.intrinsics import ELEMENT, STRUCTS, TEMPLATED, Form, form_of
from kernelgen.ascendc.types import SPELLINGS, TYPE_NAMES
from kernelgen.tensor.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, INT32, INT64, UINT32, UINT64, DType

LOGICAL = frozenset({"<", "<=", ">", ">=", "==", "!=", "&&", "||"})
WIDER = (FLOAT32, FLOAT16, UINT64, INT64, UINT32, INT32)
"""Of two operands the result has the type that is first here."""
LITERAL_LIMIT = 1 << 31
"""Integer literals below it are ints; the least int is a minus before one that is not."""


def converted(kernel: Kernel) -> Kernel:
    """The kernel with its conversions written out."""
    return replace(kernel, body=_Converter().block(kernel.body))


class _Converter:
    """Goes through statements in order; ``types`` are those of the names so far, a tensor's is that of its elements."""

    def __init__(self) -> None:
        self.types: dict[str, DType] = {}

    def block(self, statements: Sequence[Statement]) -> tuple[Statement, ...]:
        return tuple(map(self._statement, statements))

    def _statement(self, statement: Statement) -> Statement:
        match statement:
            case For(variable=variable, body=body):
                self.types[variable] = INT32
                return replace(statement, body=self.block(body))
            case If(then=then, otherwise=otherwise):
                return replace(statement, then=self.block(then), otherwise=self.block(otherwise))
            case GlobalTensor(name, dtype) | LocalTensor(name, dtype) | Let(name, dtype):
                self.types[name] = dtype
                return statement
            case MaskBits(name):
                self.types[name] = UINT64
                return statement
            case SetValue(tensor, _, value) if self.types[tensor] is BFLOAT16:
                return replace(statement, value=self._exactly(value, BFLOAT16))
            case Call():
                return self._call(statement)
            case _:
                return statement

    def _call(self, call: Call) -> Call:
        form = form_of(call)
        elements = self._elements(form, call)
        pairs = zip(form.slots, call.arguments, strict=True)
        return replace(call, arguments=tuple(self._argument(slot.type, given, elements) for slot, given in pairs))

    def _elements(self, form: Form, call: Call) -> Mapping[str, DType]:
        """What the type parameters of a prototype stand for."""
        pairs = zip(form.slots, call.arguments, strict=True)
        return {slot.type: self.types[given.tensor] for slot, given in pairs if isinstance(given, TensorRef)}

    def _argument(self, type_name: str, given: Argument, elements: Mapping[str, DType]) -> Argument:
        match given:
            case Struct(name, values) if name in STRUCTS:
                fields = zip(STRUCTS[name].values(), values, strict=True)
                template = SPELLINGS[elements[ELEMENT]] if name in TEMPLATED else ""
                return Struct(name, tuple(self._field(wanted, one, elements) for wanted, one in fields), template)
            case Expression() if type_name in elements:
                return self._exactly(given, elements[type_name])
            case _:
                return given

    def _field(
        self, type_name: str, given: Expression | Enumerator, elements: Mapping[str, DType]
    ) -> Expression | Enumerator:
        """A value inside of braces; constants are left alone, since they fit or are refused there."""
        wanted = elements.get(type_name) or TYPE_NAMES.get(type_name)
        if wanted is None or isinstance(given, Enumerator | Flag):
            return given
        if isinstance(given, Number) and wanted is not BFLOAT16:
            return given
        return self._exactly(given, wanted)

    def _exactly(self, given: Expression, wanted: DType) -> Expression:
        """The expression, of this very type."""
        if isinstance(given, Number) and wanted.is_float:
            given = Number(float(given.value))
        return given if self._type(given) is wanted else Convert(wanted, given)

    def _type(self, expression: Expression) -> DType:
        """The type that C++ gives an expression."""
        match expression:
            case Number(value):
                return FLOAT32 if isinstance(value, float) else INT32 if abs(value) < LITERAL_LIMIT else INT64
            case Name(name) | GetValue(name):
                return self.types[name]
            case Convert(dtype):
                return dtype
            case Field():
                return INT32
            case Intrinsic():
                return INT64
            case Unary("-", operand):
                return _common(self._type(operand), INT32)
            case Binary("<<" | ">>", left):
                return _common(self._type(left), INT32)
            case Binary(sign, left, right) if sign not in LOGICAL:
                return _common(self._type(left), self._type(right))
            case Choice(_, then, otherwise):
                first, second = self._type(then), self._type(otherwise)
                return first if first is second else _common(first, second)
            case _:
                return BOOL


def _common(left: DType, right: DType) -> DType:
    """The type of a sum; narrower integers become int first."""
    return next((dtype for dtype in WIDER if dtype in (left, right)), INT32)
