"""Reads the AscendC text that :mod:`printer` writes back into the IR: what is checked is the file that the user gets."""

from __future__ import annotations

from functools import lru_cache

from kernelgen.ascendc.errors import AscendError
from kernelgen.ascendc.expression_reader import number, read_expression
from kernelgen.ascendc.expressions import CORES, Core, Expression, Number
from kernelgen.ascendc.instructions import (
    KINDS,
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
    Pads,
    SetValue,
    Statement,
    Struct,
    TensorRef,
    Tiling,
)
from kernelgen.ascendc.intrinsics import BY_OPERATION, STRUCTS, form_of
from kernelgen.ascendc.scopes import check_names
from kernelgen.ascendc.tokens import Cursor
from kernelgen.ascendc.types import POSITIONS, TYPE_NAMES
from kernelgen.tensor.dtypes import DType


@lru_cache(maxsize=8)
def read_kernel(text: str) -> Kernel:
    """The kernel of a text; the last few texts are known. Raises AscendError, with the line, for what is outside the subset."""
    kernel = _Reader(text).kernel()
    check_names(kernel)
    return kernel


class _Reader:
    def __init__(self, text: str) -> None:
        self._cursor = Cursor(text)
        self._tensors = set[str]()

    def kernel(self) -> Kernel:
        cursor = self._cursor
        cursor.expect("#include", '"kernel_operator.h"', "using", "namespace", "AscendC", ";")
        struct = self._struct() if cursor.text == "struct" else None
        cursor.expect("extern", '"C"', "__global__", "__aicore__", "void")
        name = cursor.name()
        parameters, tiling = self._parameters(struct)
        cursor.expect("{", "KERNEL_TASK_TYPE_DEFAULT", "(")
        kind = cursor.name()
        if kind not in KINDS:
            raise cursor.error(f"unknown kernel type {kind!r}; known: {', '.join(KINDS)}")
        cursor.expect(")", ";")
        body = self._block()
        if cursor.token.kind != "end":
            raise cursor.error(f"{cursor.text!r} after the end of the kernel")
        return Kernel(name, parameters, tiling, kind, body)

    def _struct(self) -> tuple[str, tuple[str, ...]]:
        cursor = self._cursor
        cursor.expect("struct")
        name, fields = cursor.name(), list[str]()
        cursor.expect("{")
        while not cursor.accept("}"):
            cursor.expect("int32_t")
            fields.append(cursor.name())
            cursor.expect(";")
        cursor.expect(";")
        return name, tuple(fields)

    def _parameters(self, struct: tuple[str, tuple[str, ...]] | None) -> tuple[tuple[str, ...], Tiling | None]:
        cursor, parameters, tiling = self._cursor, list[str](), None
        cursor.expect("(")
        while not cursor.accept(")"):
            kind, name = cursor.name(), cursor.name()
            if kind == "GM_ADDR":
                parameters.append(name)
            elif struct is not None and kind == struct[0]:
                tiling = Tiling(kind, name, struct[1])
            else:
                raise cursor.error(f"unknown type {kind!r} of parameter {name!r}")
            cursor.accept(",")
        return tuple(parameters), tiling

    def _block(self) -> tuple[Statement, ...]:
        statements = list[Statement]()
        while not self._cursor.accept("}"):
            statements.append(self._statement())
        return tuple(statements)

    def _statement(self) -> Statement:
        cursor = self._cursor
        line, text = cursor.token.line, cursor.text
        match text:
            case "for":
                return self._for(line)
            case "if":
                return self._if(line)
            case "GlobalTensor":
                return self._global_tensor(line)
            case "LocalTensor":
                return self._local_tensor(line)
            case _ if text in TYPE_NAMES:
                return self._array(line) if cursor.ahead(2) == "[" else self._let(line)
            case _ if cursor.ahead(1) == ".":
                return self._set_value(line)
            case _:
                return self._call(line)

    def _for(self, line: int) -> For:
        cursor = self._cursor
        cursor.expect("for", "(", "int32_t")
        name = cursor.name()
        cursor.expect("=")
        start = read_expression(cursor)
        cursor.expect(";", name, "<")
        stop = read_expression(cursor)
        cursor.expect(";", name, "+=")
        step = read_expression(cursor)
        cursor.expect(")", "{")
        return For(name, start, stop, step, self._block(), line)

    def _if(self, line: int) -> If:
        cursor = self._cursor
        cursor.expect("if")
        condition = self._condition()
        cursor.expect("{")
        then, otherwise = self._block(), tuple[Statement, ...]()
        if cursor.accept("else"):
            cursor.expect("{")
            otherwise = self._block()
        return If(condition, then, otherwise, line)

    def _condition(self) -> Expression:
        cursor = self._cursor
        if cursor.text in CORES:
            return Core(cursor.take())
        cursor.expect("(")
        condition = read_expression(cursor)
        cursor.expect(")")
        return condition

    def _element_type(self) -> DType:
        self._cursor.expect("<")
        spelling = self._cursor.name()
        if spelling not in TYPE_NAMES:
            raise self._cursor.error(f"unknown type {spelling!r}; known: {', '.join(TYPE_NAMES)}")
        self._cursor.expect(">")
        return TYPE_NAMES[spelling]

    def _global_tensor(self, line: int) -> GlobalTensor:
        cursor = self._cursor
        cursor.expect("GlobalTensor")
        dtype, name = self._element_type(), cursor.name()
        cursor.expect(";", name, ".", "SetGlobalBuffer", "(", "(", "__gm__")
        if TYPE_NAMES.get(cursor.name()) is not dtype:
            raise cursor.error(f"{name} is declared as {dtype.name}, and its buffer as another type")
        cursor.expect("*", ")")
        parameter = cursor.name()
        cursor.expect(",")
        size = read_expression(cursor)
        cursor.expect(")", ";")
        self._tensors.add(name)
        return GlobalTensor(name, dtype, parameter, size, line)

    def _local_tensor(self, line: int) -> LocalTensor:
        cursor = self._cursor
        cursor.expect("LocalTensor")
        dtype, name = self._element_type(), cursor.name()
        cursor.expect("(")
        position = cursor.name().removeprefix("TPosition::")
        if position not in POSITIONS:
            raise cursor.error(f"unknown position {position!r}; known: {', '.join(POSITIONS)}")
        cursor.expect(",")
        address = read_expression(cursor)
        cursor.expect(",")
        size = read_expression(cursor)
        cursor.expect(")", ";")
        self._tensors.add(name)
        return LocalTensor(name, dtype, position, address, size, line)

    def _array(self, line: int) -> MaskBits | Pads:
        cursor = self._cursor
        if cursor.accept("uint8_t"):
            name = cursor.name()
            cursor.expect("[", "4", "]", "=", "{", "0", ",", "0", ",", "0", ",", "0", "}", ";")
            return Pads(name, line)
        cursor.expect("uint64_t")
        name = cursor.name()
        cursor.expect("[", "2", "]", "=", "{")
        low = int(number(cursor.take()))
        cursor.expect(",")
        high = int(number(cursor.take()))
        cursor.expect("}", ";")
        return MaskBits(name, low, high, line)

    def _let(self, line: int) -> Let:
        cursor = self._cursor
        dtype, name = TYPE_NAMES[cursor.name()], cursor.name()
        cursor.expect("=")
        value = read_expression(cursor)
        cursor.expect(";")
        return Let(name, dtype, value, line)

    def _set_value(self, line: int) -> SetValue:
        cursor = self._cursor
        tensor = cursor.name()
        cursor.expect(".", "SetValue", "(")
        index = read_expression(cursor)
        cursor.expect(",")
        value = read_expression(cursor)
        cursor.expect(")", ";")
        return SetValue(tensor, index, value, line)

    def _call(self, line: int) -> Call:
        cursor = self._cursor
        operation = cursor.name()
        if operation not in BY_OPERATION:
            raise AscendError(f"{operation}: it is not in the fixed subset", line)
        template = self._template() if cursor.text == "<" else ()
        cursor.expect("(")
        arguments = list[Argument]()
        while not cursor.accept(")"):
            arguments.append(self._argument())
            if cursor.text != ")":
                cursor.expect(",")
        cursor.expect(";")
        call = Call(operation, template, tuple(arguments), line)
        form_of(call)
        return call

    def _template(self) -> tuple[str, ...]:
        cursor, values = self._cursor, list[str]()
        cursor.expect("<")
        while not cursor.accept(">"):
            values.append(cursor.take())
            cursor.accept(",")
        return tuple(values)

    def _argument(self) -> Argument:
        cursor = self._cursor
        text = cursor.text
        if text in STRUCTS:
            return self._struct_value()
        if text in self._tensors and cursor.ahead(1) != ".":
            return self._tensor_ref()
        return self._plain()

    def _plain(self) -> Expression | Enumerator:
        if "::" in self._cursor.text:
            return Enumerator(self._cursor.take())
        return read_expression(self._cursor)

    def _tensor_ref(self) -> TensorRef:
        cursor = self._cursor
        tensor = cursor.name()
        offset: Expression = Number(0)
        if cursor.accept("["):
            offset = read_expression(cursor)
            cursor.expect("]")
        return TensorRef(tensor, offset)

    def _struct_value(self) -> Struct:
        cursor = self._cursor
        name, template = cursor.name(), ""
        if cursor.accept("<"):
            template = cursor.take()
            cursor.expect(">")
        cursor.expect("{")
        values = list[Expression | Enumerator]()
        while not cursor.accept("}"):
            values.append(self._plain())
            if cursor.text != "}":
                cursor.expect(",")
        if len(values) != len(STRUCTS[name]):
            raise cursor.error(f"{name} has {len(STRUCTS[name])} fields, {len(values)} are given")
        return Struct(name, tuple(values), template)
