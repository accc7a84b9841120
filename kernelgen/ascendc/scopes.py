"""Names: each is declared before it is used and known to the end of its block, as in C++; none may hide an outer one."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Sequence

from kernelgen.ascendc.errors import AscendError
from kernelgen.ascendc.expressions import Binary, Choice, Convert, Expression, Field, GetValue, Name, Unary
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

TENSOR, SCALAR, MASK, PADS, PARAMETER = "tensor", "scalar", "mask", "pads", "parameter"
Names = ChainMap[str, str]
"""Name -> what it is, the innermost block first."""


def check_names(kernel: Kernel) -> None:
    """Raises AscendError, with the line, for a name that is not declared, declared twice, or of another kind."""
    names: Names = ChainMap(dict.fromkeys(kernel.parameters, PARAMETER))
    _check_block(kernel, kernel.body, names)


def _check_block(kernel: Kernel, statements: Sequence[Statement], names: Names) -> None:
    for statement in statements:
        _check_uses(_uses(kernel, statement), names, statement)
        match statement:
            case For(variable=variable, stop=stop, step=step, body=body):
                inside = names.new_child()
                _declare(inside, variable, SCALAR, statement.line)
                for bound in (stop, step):
                    _check_uses(_names(kernel, bound, statement.line), inside, statement)
                _check_block(kernel, body, inside)
            case If(then=then, otherwise=otherwise):
                _check_block(kernel, then, names.new_child())
                _check_block(kernel, otherwise, names.new_child())
            case GlobalTensor(name=name) | LocalTensor(name=name):
                _declare(names, name, TENSOR, statement.line)
            case Let(name=name):
                _declare(names, name, SCALAR, statement.line)
            case MaskBits(name=name):
                _declare(names, name, MASK, statement.line)
            case Pads(name=name):
                _declare(names, name, PADS, statement.line)
            case _:
                pass


def _check_uses(uses: Iterator[tuple[str, str]], names: Names, statement: Statement) -> None:
    """A mask may stand where a call takes a scalar, and so may pads."""
    for name, kind in uses:
        found = names.get(name, "nothing")
        if found != kind and not (kind == SCALAR and found in (MASK, PADS) and isinstance(statement, Call)):
            raise AscendError(f"{name!r} is used as a {kind}, and declared as {found}", statement.line)


def _declare(names: Names, name: str, kind: str, line: int) -> None:
    if name in names:
        raise AscendError(f"{name!r} is declared twice", line)
    names[name] = kind


def _uses(kernel: Kernel, statement: Statement) -> Iterator[tuple[str, str]]:
    """(name, kind) of everything that a statement names before its own name counts."""
    match statement:
        case For(start=start):
            yield from _names(kernel, start, statement.line)
        case If(condition=condition):
            yield from _names(kernel, condition, statement.line)
        case GlobalTensor(parameter=parameter, size=size):
            yield parameter, PARAMETER
            yield from _names(kernel, size, statement.line)
        case LocalTensor(address=address, size=size):
            yield from _names(kernel, address, statement.line)
            yield from _names(kernel, size, statement.line)
        case Let(value=value):
            yield from _names(kernel, value, statement.line)
        case SetValue(tensor=tensor, index=index, value=value):
            yield tensor, TENSOR
            yield from _names(kernel, index, statement.line)
            yield from _names(kernel, value, statement.line)
        case Call(arguments=arguments):
            for argument in arguments:
                yield from _argument(kernel, argument, statement.line)
        case _:
            pass


def _argument(kernel: Kernel, argument: Argument, line: int) -> Iterator[tuple[str, str]]:
    match argument:
        case TensorRef(tensor, offset):
            yield tensor, TENSOR
            yield from _names(kernel, offset, line)
        case Struct(values=values):
            for value in values:
                yield from _argument(kernel, value, line)
        case Enumerator():
            pass
        case _:
            yield from _names(kernel, argument, line)


def _names(kernel: Kernel, expression: Expression, line: int) -> Iterator[tuple[str, str]]:
    match expression:
        case Name(name):
            yield name, SCALAR
        case Field(struct, field):
            tiling = kernel.tiling
            if tiling is None or struct != tiling.name or field not in tiling.fields:
                raise AscendError(f"{struct}.{field} is no field of the tiling struct", line)
        case GetValue(tensor, index):
            yield tensor, TENSOR
            yield from _names(kernel, index, line)
        case Unary(operand=operand) | Convert(operand=operand):
            yield from _names(kernel, operand, line)
        case Binary(left=left, right=right):
            yield from _names(kernel, left, line)
            yield from _names(kernel, right, line)
        case Choice(condition, then, otherwise):
            for part in (condition, then, otherwise):
                yield from _names(kernel, part, line)
        case _:
            pass
