"""Weak typing of operands that are no tensors.

A Python scalar takes the data type of the first tensor operand when it fits without loss of kind: no float into an
integer tensor, no integer into bool; ``TypeRuleError`` says to cast the tensor. A numpy array does so between floats
and between integers and keeps its own data type otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from graphkernel.errors import TypeRuleError
from graphkernel.ir.types import Category, DType, dtype
from graphkernel.ops.families import Array

Scalar = bool | int | float


def weak_array(operand: object, like: DType) -> Array:
    """A Python scalar or array as an array of the data type ``like``, where weak typing allows it."""
    if isinstance(operand, bool | int | float):
        return _weak_scalar(operand, like)
    array = np.asarray(operand)
    if array.dtype.kind in "OUS":
        raise TypeRuleError(f"{_described(operand)} is no operand: give a tensor, an array or a number")
    own = dtype(array.dtype)
    same_kind = (own.is_float and like.is_float) or (own.is_integer and like.is_integer)
    return array.astype(like.numpy) if same_kind else array


def _described(operand: object) -> str:
    """What was given instead of an operand; several tensors are the results of an operator that has several."""
    if not isinstance(operand, tuple | list):
        return f"{operand!r} ({type(operand).__name__})"
    inside = ", ".join(type(item).__name__ for item in cast("Sequence[object]", operand))
    return f"a {type(operand).__name__} ({inside}), perhaps all results of an operator (choose one, as in y[0]),"


def _weak_scalar(scalar: Scalar, like: DType) -> Array:
    float_to_integer = isinstance(scalar, float) and like.category in (Category.BOOL, Category.INT, Category.UINT)
    integer_to_bool = not isinstance(scalar, bool) and like.category is Category.BOOL
    if float_to_integer or integer_to_bool:
        raise TypeRuleError(
            f"the scalar {scalar!r} does not fit a {like.name} tensor; cast the tensor first (ops.cast)"
        )
    try:
        return np.asarray(scalar, like.numpy)
    except OverflowError as error:
        raise TypeRuleError(f"the scalar {scalar!r} is out of range for {like.name}") from error
