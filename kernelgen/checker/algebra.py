"""Numpy arrays of numbers that stand for terms, and the rules of element-wise operators on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelgen.checker import terms
from kernelgen.checker.terms import Function
from kernelgen.composite.scalar_rules import constant, operand_dtypes
from kernelgen.nest.scalars import SCALARS, Result
from kernelgen.tensor.dtypes import BOOL, DType

Array = np.ndarray[Any, Any]  # of Python integers


@dataclass(frozen=True)
class Terms:
    """The numbers of the elements of a tensor."""

    numbers: Array
    kind: DType


@dataclass(frozen=True)
class TermAlgebra:
    """The :class:`~kernelgen.composite.scalar_rules.Algebra` of terms; ``ordered`` as in :mod:`kernelgen.checker.terms`."""

    ordered: bool = False

    def call(self, function: str, *args: Terms | float) -> Terms:
        """The scalar function on every element, operands broadcast."""
        given = tuple(arg.kind if isinstance(arg, Terms) else None for arg in args)
        kinds = operand_dtypes(function, given)
        operands = [self._operand(arg, kind).numbers for arg, kind in zip(args, kinds, strict=True)]
        result = BOOL if SCALARS[function].result is Result.BOOL else kinds[-1]
        return Terms(_mapped(terms.function(function, kinds[-1], self.ordered), *operands), result)

    def cast(self, value: Terms, target: DType) -> Terms:
        """The terms after a conversion."""
        convert = terms.conversion(value.kind, target)
        return Terms(value.numbers if convert is None else _mapped(convert, value.numbers), target)

    def literal(self, value: float, target: DType) -> Terms:
        """A constant of rank 0."""
        return Terms(array([terms.literal(constant(value, target), target)], ()), target)

    def dtype(self, value: Terms) -> DType:
        """The data type of the elements."""
        return value.kind

    def fold(self, function: str, value: Terms, axes: Sequence[int]) -> Terms:
        """The axes folded by the function of a reduction, the last one first; their extents become 1."""
        fold = np.frompyfunc(terms.function(function, value.kind, self.ordered), 2, 1)
        numbers = value.numbers
        for axis in sorted(axes, reverse=True):
            if numbers.shape[axis]:
                numbers = np.asarray(fold.reduce(numbers, axis=axis, keepdims=True), object)
            else:
                shape = (*numbers.shape[:axis], 1, *numbers.shape[axis + 1 :])
                numbers = np.full(shape, terms.neutral(function, value.kind), object)
        return Terms(numbers, value.kind)

    def _operand(self, value: Terms | float, target: DType) -> Terms:
        return self.cast(value, target) if isinstance(value, Terms) else self.literal(value, target)


def array(numbers: Sequence[int], shape: Sequence[int]) -> Array:
    """Python integers as an array of that shape."""
    made = np.empty(len(numbers), object)
    made[:] = numbers
    return made.reshape(shape)


def _mapped(compute: Function, *operands: Array) -> Array:
    return np.asarray(np.frompyfunc(compute, len(operands), 1)(*operands), object)
