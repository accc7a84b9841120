"""Prints a kernel as static-tensor AscendC, one call a line; :mod:`reader` reads the same text back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kernelgen.ascendc.errors import AscendError
from kernelgen.ascendc.expressions import (
    PRECEDENCE,
    Binary,
    Choice,
    Convert,
    Core,
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
    Pads,
    SetValue,
    Statement,
    Struct,
    TensorRef,
)
from kernelgen.ascendc.types import CONVERSIONS, SPELLINGS
from kernelgen.system.identifiers import identifier

HEAD = ('#include "kernel_operator.h"', "using namespace AscendC;")
INDENT = "    "
SPECIAL = {"inf": "__builtin_inff()", "-inf": "-__builtin_inff()", "nan": '__builtin_nanf("")'}
"""The compiler's own functions: kernel_operator.h need not bring a header that declares INFINITY and NAN."""
TIGHTEST = 9


def print_kernel(kernel: Kernel) -> str:
    """The AscendC text of a kernel: include, tiling struct, entry, body. ``read_kernel`` gives the same kernel back."""
    return "\n".join([*HEAD, "", *_tiling(kernel), *_entry(kernel), *_block(kernel.body, 1), "}", ""])


def _tiling(kernel: Kernel) -> Iterator[str]:
    if kernel.tiling is not None:
        yield f"struct {_plain(kernel.tiling.type_name)} {{"
        yield from (f"{INDENT}int32_t {_plain(field)};" for field in kernel.tiling.fields)
        yield "};"
        yield ""


def _entry(kernel: Kernel) -> Iterator[str]:
    parameters = [f"GM_ADDR {_plain(name)}" for name in kernel.parameters]
    if kernel.tiling is not None:
        parameters.append(f"{kernel.tiling.type_name} {kernel.tiling.name}")
    yield f'extern "C" __global__ __aicore__ void {_plain(kernel.name)}({", ".join(parameters)}) {{'
    yield f"{INDENT}KERNEL_TASK_TYPE_DEFAULT({kernel.kind});"


def _plain(name: str) -> str:
    """A name where it is declared: everything else that is printed refers to one of these."""
    if identifier(name) != name:
        raise AscendError(f"{name!r} is no identifier, and must not be printed")
    return name


def _block(statements: Sequence[Statement], depth: int) -> Iterator[str]:
    for statement in statements:
        yield from _statement(statement, depth)


def _statement(statement: Statement, depth: int) -> Iterator[str]:
    indent = INDENT * depth
    match statement:
        case For():
            name, step = _plain(statement.variable), show(statement.step)
            head = f"int32_t {name} = {show(statement.start)}; {name} < {show(statement.stop)}; {name} += {step}"
            yield f"{indent}for ({head}) {{"
            yield from _block(statement.body, depth + 1)
            yield f"{indent}}}"
        case If():
            yield f"{indent}if {_condition(statement.condition)} {{"
            yield from _block(statement.then, depth + 1)
            if statement.otherwise:
                yield f"{indent}}} else {{"
                yield from _block(statement.otherwise, depth + 1)
            yield f"{indent}}}"
        case _:
            yield from (f"{indent}{line}" for line in _lines(statement))


def _condition(expression: Expression) -> str:
    """What follows ``if``. The name of a kind of core is a macro that brings its own parentheses, and ``constexpr``."""
    return expression.name if isinstance(expression, Core) else f"({show(expression)})"


def _lines(statement: Statement) -> Iterator[str]:
    match statement:
        case GlobalTensor(name, dtype, parameter, size):
            spelling = SPELLINGS[dtype]
            yield f"GlobalTensor<{spelling}> {_plain(name)};"
            yield f"{name}.SetGlobalBuffer((__gm__ {spelling}*){parameter}, {show(size)});"
        case LocalTensor(name, dtype, position, address, size):
            yield f"LocalTensor<{SPELLINGS[dtype]}> {_plain(name)}(TPosition::{position}, {show(address)}, {show(size)});"
        case MaskBits(name, low, high):
            yield f"uint64_t {_plain(name)}[2] = {{{low:#x}, {high:#x}}};"
        case Pads(name):
            yield f"uint8_t {_plain(name)}[4] = {{0, 0, 0, 0}};"
        case Let(name, dtype, value):
            yield f"{SPELLINGS[dtype]} {_plain(name)} = {show(value)};"
        case SetValue(tensor, index, value):
            yield f"{tensor}.SetValue({show(index)}, {show(value)});"
        case Call(operation, template, arguments):
            angle = f"<{', '.join(template)}>" if template else ""
            yield f"{operation}{angle}({', '.join(map(_argument, arguments))});"
        case _:
            raise AscendError(f"no text for a {type(statement).__name__}")


def _argument(argument: Argument) -> str:
    match argument:
        case TensorRef(tensor, offset):
            return tensor if offset == Number(0) else f"{tensor}[{show(offset)}]"
        case Enumerator(name):
            return name
        case Struct(name, values, template):
            angle = f"<{template}>" if template else ""
            return f"{name}{angle}{{{', '.join(map(_argument, values))}}}"
        case _:
            return show(argument)


def show(expression: Expression, outer: int = 0) -> str:
    """An expression as C++, with the parentheses it needs inside of an operator of strength ``outer``.

    Raises AscendError for what C++ has no text for.
    """
    match expression:
        case Number(value):
            return _number(value)
        case Name(name) | Flag(name):
            return name
        case Field(struct, field):
            return f"{struct}.{field}"
        case Intrinsic(name):
            return f"{name}()"
        case Convert(dtype, operand):
            return f"{CONVERSIONS.get(dtype) or f'static_cast<{SPELLINGS[dtype]}>'}({show(operand)})"
        case GetValue(tensor, index):
            return f"{tensor}.GetValue({show(index)})"
        case Unary(operator, operand):
            return f"{operator}{show(operand, TIGHTEST)}"
        case Binary(operator, left, right):
            strength = PRECEDENCE[operator]
            text = f"{show(left, strength)} {operator} {show(right, strength + 1)}"
            return f"({text})" if strength < outer else text
        case Choice(condition, then, otherwise):
            return f"({show(condition)} ? {show(then)} : {show(otherwise)})"
        case _:
            raise AscendError(f"no text for a {type(expression).__name__}")


def _number(value: float) -> str:
    """Integers as they are; floats with the fewest digits that give the same float32, and an ``f``."""
    if isinstance(value, int):
        return str(value)
    text = repr(float(value))
    if text in SPECIAL:
        return SPECIAL[text]
    shortest = str(np.float32(value)) if float(np.float32(value)) == value else text
    return f"{shortest}f"
