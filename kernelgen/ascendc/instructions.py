"""The instruction-level IR: a kernel as statements for pipes. It prints as AscendC, and AscendC reads back into it.

A :class:`Call` is one instruction: the operation, its operands, and the mask, repeat and strides in the order of the
manual. What its arguments mean is in :mod:`forms`; :mod:`build` writes them by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kernelgen.ascendc.expressions import Expression
from kernelgen.tensor.dtypes import DType

GATHER, SELECT, TRANSPOSE = "Gather", "Select", "Transpose"
"""Instructions that are called as operators of graphs are: spelled here alone, so that neither is taken for the other."""

AIV_ONLY, AIC_ONLY, MIX = KINDS = ("KERNEL_TYPE_AIV_ONLY", "KERNEL_TYPE_AIC_ONLY", "KERNEL_TYPE_MIX_AIC_1_2")
"""Which cores a kernel runs on where they are split: vector, cube, or one cube with its two vector cores."""


@dataclass(frozen=True)
class TensorRef:
    """A tensor as an operand, from an element on: ``x_ub[i * 64]``."""

    tensor: str
    offset: Expression


@dataclass(frozen=True)
class Enumerator:
    """``RoundMode::CAST_RINT``, or a plain name such as ``CFG_ROW_MAJOR``."""

    name: str


@dataclass(frozen=True)
class Struct:
    """``UnaryRepeatParams{1, 1, 8, 8}``; ``template`` is ``float`` in ``DataCopyPadExtParams<float>{...}``."""

    name: str
    values: tuple[Expression | Enumerator, ...]
    template: str = ""


Argument = TensorRef | Enumerator | Struct | Expression


class Statement:
    """One line of a kernel, or a block of lines. ``line`` is its line in the text, 0 before it is printed."""

    line: int


@dataclass(frozen=True)
class GlobalTensor(Statement):
    """A tensor in GM: ``size`` elements of a parameter of the kernel. Two lines of text."""

    name: str
    dtype: DType
    parameter: str
    size: Expression
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class LocalTensor(Statement):
    """A tensor in a core's memory: position, byte address, elements."""

    name: str
    dtype: DType
    position: str
    address: Expression
    size: Expression
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class MaskBits(Statement):
    """A mask with a bit for each lane: bits 0 to 63 in ``low``, 64 to 127 in ``high``."""

    name: str
    low: int
    high: int
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Pads(Statement):
    """Rows and columns around an image, none on its four sides: what a load of a window asks for."""

    name: str
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Let(Statement):
    """A scalar that gets its value once.

    ``parity`` marks the turn of the loop around it, modulo 2: it picks one of two copies of that loop's tiles.
    """

    name: str
    dtype: DType
    value: Expression
    line: int = field(default=0, compare=False)
    parity: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class SetValue(Statement):
    """``tensor.SetValue(index, value)``: the scalar unit writes one element."""

    tensor: str
    index: Expression
    value: Expression
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Call(Statement):
    """``Operation<template>(arguments);``."""

    operation: str
    template: tuple[str, ...]
    arguments: tuple[Argument, ...]
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class For(Statement):
    """Counts ``variable`` from ``start`` while it is below ``stop``, by ``step``."""

    variable: str
    start: Expression
    stop: Expression
    step: Expression
    body: tuple[Statement, ...]
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class If(Statement):
    """A branch of the scalar unit."""

    condition: Expression
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Tiling:
    """The struct of int32 numbers that the host hands over: sizes that are not known when the kernel is written."""

    type_name: str
    name: str
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Kernel:
    """A kernel: its entry, GM parameters in order, tiling struct or None, and its body."""

    name: str
    parameters: tuple[str, ...]
    tiling: Tiling | None
    kind: str
    body: tuple[Statement, ...]


def statements_in(body: Sequence[Statement]) -> Iterator[Statement]:
    """The statements of a body, with those of its loops and branches."""
    for statement in body:
        yield statement
        if isinstance(statement, For):
            yield from statements_in(statement.body)
        elif isinstance(statement, If):
            yield from statements_in((*statement.then, *statement.otherwise))
