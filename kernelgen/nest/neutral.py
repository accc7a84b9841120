"""Where a reduction starts."""

from __future__ import annotations

import math

from kernelgen.errors import NestError
from kernelgen.nest.nodes import Literal
from kernelgen.tensor.dtypes import DType


def neutral_element(function: str, dtype: DType) -> Literal:
    """The value that changes nothing: 0, 1, the lowest or the greatest value of the dtype.

    Raises NestError for a function that folds nothing.
    """
    match function:
        case "add" | "logical_or":
            return Literal(False if dtype.name == "bool" else 0.0 if dtype.is_float else 0, dtype)
        case "mul" | "logical_and":
            return Literal(True if dtype.name == "bool" else 1.0 if dtype.is_float else 1, dtype)
        case "maximum" | "minimum":
            return Literal(_extreme(dtype, lowest=function == "maximum"), dtype)
        case _:
            raise NestError(f"{function!r} has no neutral element")


def _extreme(dtype: DType, lowest: bool) -> bool | int | float:
    if dtype.is_float:
        return -math.inf if lowest else math.inf
    if dtype.name == "bool":
        return not lowest
    signed = dtype.category.value == "int"
    if lowest:
        return -(2 ** (dtype.bits - 1)) if signed else 0
    return 2 ** (dtype.bits - 1) - 1 if signed else 2**dtype.bits - 1
