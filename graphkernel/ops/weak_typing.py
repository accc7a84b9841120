"""Weak typing of operands that are no tensors.

A Python scalar takes the data type of the first tensor operand when it fits without loss of kind: no float into an
integer tensor, no integer into bool; ``TypeRuleError`` says to cast the tensor. A numpy array does so between floats
and between integers and keeps its own data type otherwise.
"""

from __future__ import annotations

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
    own = dtype(array.dtype)
    same_kind = (own.is_float and like.is_float) or (own.is_integer and like.is_integer)
    return array.astype(like.numpy) if same_kind else array


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
