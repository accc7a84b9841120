"""Weak typing of operands that are no tensors: Python's numbers have no data type, everything else keeps its own.

A Python number, or a list of them, takes the data type of the first tensor operand when it fits without loss of kind: no
float into an integer tensor, no integer into bool; ``TypeRuleError`` says to cast the tensor. Where the operator expects
indices, whole numbers become :data:`INDEX`. Arrays and numpy's integers keep their data type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from graphkernel.errors import TypeRuleError
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.families import Array
from kernelgen.tensor.types import Category, DType, dtype

Scalar = bool | int | float
INDEX = dtype("int64")
"""What Python's whole numbers are where an operator expects indices: the data of a tensor says nothing of its places."""


def weak_array(operand: object, like: DType) -> Array:
    """An operand that is no tensor as an array; Python's numbers take the data type ``like`` where they fit.

    Raises TypeRuleError for what is no number.
    """
    if isinstance(operand, bool | int | float):
        return _weak_numbers(operand, operand, like)
    array = np.asarray(operand)
    if array.dtype.kind in "OUS":
        raise TypeRuleError(f"{_described(operand)} is no operand: give a tensor, an array or a number")
    if isinstance(operand, np.ndarray | np.generic):
        return array
    numbers = array.reshape(-1).tolist()
    return array if not numbers else _weak_numbers(operand, numbers[0], like)


def operand_types(op: Operator, types: Sequence[DType | None]) -> list[DType]:
    """The data type that a Python number takes at each place; ``types`` are those of the operands that have one.

    At the place of indices :data:`INDEX`, elsewhere what the record says, or that of the first other operand; float32 when
    there is none.
    """
    data = (own for place, own in enumerate(types) if own is not None and place not in op.indices)
    like = dtype(op.traits.numbers) if op.traits.numbers else next(data, dtype("float32"))
    return [INDEX if place in op.indices else like for place in range(len(types))]


def _described(operand: object) -> str:
    """What was given instead of an operand; several tensors are the results of an operator that has several."""
    if not isinstance(operand, tuple | list):
        return f"{operand!r} ({type(operand).__name__})"
    inside = ", ".join(type(item).__name__ for item in cast("Sequence[object]", operand))
    return f"a {type(operand).__name__} ({inside}), perhaps all results of an operator (choose one, as in y[0]),"


def _weak_numbers(given: object, example: Scalar, like: DType) -> Array:
    """A Python number, or nested lists of the kind of ``example``, in the data type ``like``."""
    float_to_integer = isinstance(example, float) and like.category in (Category.BOOL, Category.INT, Category.UINT)
    integer_to_bool = not isinstance(example, bool) and like.category is Category.BOOL
    if float_to_integer or integer_to_bool:
        raise TypeRuleError(f"{given!r} does not fit a {like.name} tensor; cast the tensor first (ops.cast)")
    try:
        return np.asarray(given, like.numpy)
    except OverflowError as error:
        raise TypeRuleError(f"{given!r} is out of range for {like.name}") from error
